/** @file
 * Backends written in C++17, for etude/etude.hpp.
 *
 *     class Scale : public etude::Backend {
 *       std::vector<etude::OptionSpec> options() const override { return {{"percent", "factor, in percent", int64_t{100}}}; }
 *       std::unique_ptr<etude::Delegate> init(etude::InitContext &ctx, etude::Span<const uint8_t> payload) override;
 *     };
 *     etude::register_backend(runtime, "ScaleBackend", std::make_unique<Scale>());
 *
 * Ownership: the runtime owns the backend, and a method its delegates, which end before it.
 * Errors: what `init` and `execute` throw arrives at the caller of `load` and `execute`; what is no ::etude::Error has the
 * status Internal.
 * Threads: `init` and the delegates' `execute` may be called at the same time for different delegates, for one of them not.
 */
#ifndef ETUDE_BACKEND_HPP_
#define ETUDE_BACKEND_HPP_

#include <etude/etude.hpp>

#include <exception>
#include <mutex>
#include <new>

namespace etude {

/** An option that a backend understands; its type is that of its default. Values are checked before they arrive. */
struct OptionSpec {
  std::string key;
  std::string help; /**< one line */
  Option default_value;
  int64_t minimum = 0, maximum = 0; /**< of an int; both 0 = any */
  bool effect_now = false;          /**< a process-wide change reaches methods that are loaded already */
};

namespace detail {

/** Options of an init or execute context, by type: bool, int64_t, std::string. */
template <class T> T option_of(const etude_init_context *ctx, const std::string &key) {
  Check check;
  if constexpr (std::is_same_v<T, std::string>) {
    const char *text = nullptr;
    check(etude_init_context_option_string(ctx, key.c_str(), &text, check));
    return text;
  } else if constexpr (std::is_same_v<T, bool>) {
    bool truth = false;
    check(etude_init_context_option_bool(ctx, key.c_str(), &truth, check));
    return truth;
  } else {
    static_assert(std::is_same_v<T, int64_t>, "an option is a bool, an int64_t or a std::string");
    int64_t number = 0;
    check(etude_init_context_option_int(ctx, key.c_str(), &number, check));
    return number;
  }
}
template <class T> T option_of(const etude_execute_context *ctx, const std::string &key) {
  Check check;
  if constexpr (std::is_same_v<T, std::string>) {
    char text[ETUDE_OPTION_STRING_SIZE];
    check(etude_execute_context_option_string(ctx, key.c_str(), text, sizeof text, check));
    return text;
  } else if constexpr (std::is_same_v<T, bool>) {
    bool truth = false;
    check(etude_execute_context_option_bool(ctx, key.c_str(), &truth, check));
    return truth;
  } else {
    static_assert(std::is_same_v<T, int64_t>, "an option is a bool, an int64_t or a std::string");
    int64_t number = 0;
    check(etude_execute_context_option_int(ctx, key.c_str(), &number, check));
    return number;
  }
}

}  // namespace detail

/** What `init` may ask. Spans live as long as the method. */
class InitContext {
 public:
  explicit InitContext(etude_init_context *ctx) noexcept : ctx_(ctx) {}
  std::string method_name() const { return etude_init_context_method_name(ctx_); }
  /** What the exporter noted under @p key; NotFound where it is nothing. */
  Span<const uint8_t> compile_spec(const std::string &key) const {
    detail::Check check;
    etude_compile_spec spec;
    check(etude_init_context_find_spec(ctx_, key.c_str(), &spec, check));
    return {static_cast<const uint8_t *>(spec.value.data), spec.value.size};
  }
  /** Named data of the program or its data files. */
  Span<const uint8_t> named_data(const std::string &key) {
    detail::Check check;
    etude_bytes data;
    check(etude_init_context_named_data(ctx_, key.c_str(), &data, check));
    return {static_cast<const uint8_t *>(data.data), data.size};
  }
  /** The value of an option for this load: `option<int64_t>("percent")`. InvalidType where it is of another type. */
  template <class T> T option(const std::string &key) const { return detail::option_of<T>(ctx_, key); }
  etude_init_context *c() const noexcept { return ctx_; }

 private:
  etude_init_context *ctx_;
};

/** What `execute` may ask, and the arguments of the call: the inputs, then the outputs. */
class ExecuteContext {
 public:
  ExecuteContext(etude_execute_context *ctx, Span<etude_value *const> arguments) noexcept : ctx_(ctx), arguments_(arguments) {}
  std::string method_name() const { return etude_execute_context_method_name(ctx_); }
  /** The present value of an option. */
  template <class T> T option(const std::string &key) const { return detail::option_of<T>(ctx_, key); }
  size_t argument_count() const noexcept { return arguments_.size(); }
  /** Argument @p index; `tensor()` and the like of Output say what it is. */
  Output argument(size_t index) const {
    if (index >= arguments_.size()) {
      detail::fail(ETUDE_INVALID_ARGUMENT, "there is no argument " + std::to_string(index));
    }
    return Output(*arguments_[index]);
  }
  /** Give an output its sizes, and storage, before it is written. */
  void resize(size_t index, Span<const int32_t> sizes) {
    detail::Check check;
    etude_tensor *tensor = const_cast<etude_tensor *>(argument(index).tensor().c());
    check(etude_execute_context_resize(ctx_, tensor, sizes.data(), static_cast<uint32_t>(sizes.size()), check));
  }
  /**
   * Run `body(i, worker)` for every i below @p count, on the runtime's threads, in any order; `worker` is below `worker_count()`,
   * and of two that run at once it differs. What one of them throws is thrown here, when all are done.
   */
  template <class Body> void parallel_for(size_t count, const Body &body) {
    struct Task {
      const Body &body;
      std::exception_ptr thrown;
      std::mutex mutex;
    } task{body, nullptr, {}};
    etude_execute_context_parallel_for(
        ctx_, count,
        [](void *arg, size_t index, size_t worker) {
          Task &own = *static_cast<Task *>(arg);
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
          try {
            own.body(index, worker);
          } catch (...) {
            const std::lock_guard<std::mutex> lock(own.mutex);
            own.thrown = std::current_exception();
          }
#else
          own.body(index, worker);
#endif
        },
        &task);
    if (task.thrown) {
      std::rethrow_exception(task.thrown);
    }
  }
  /** Workers of such loops, at least 1. */
  size_t worker_count() const noexcept { return etude_execute_context_worker_count(ctx_); }
  /** Count work against the method's limit, and throw where it is used up, or the execution was cancelled. */
  void work(uint64_t amount) {
    detail::Check check;
    check(etude_execute_context_work(ctx_, amount, check));
  }
  /** The elements of an output, to write. InvalidType where they are none of T, InvalidArgument for what is read-only. */
  template <class T> Span<T> output(size_t index) {
    const TensorView view = argument(index).tensor();
    const Span<const T> elements = view.data<T>();
    if ((view.c()->flags & ETUDE_TENSOR_READONLY) != 0) {
      detail::fail(ETUDE_INVALID_ARGUMENT, "argument " + std::to_string(index) + " can't be written");
    }
    return {const_cast<T *>(elements.data()), elements.size()};
  }
  etude_execute_context *c() const noexcept { return ctx_; }

 private:
  etude_execute_context *ctx_;
  Span<etude_value *const> arguments_;
};

/** What a backend made ready for one part of a method. */
class Delegate {
 public:
  virtual ~Delegate() = default;
  virtual void execute(ExecuteContext &ctx) = 0;
};

/** What runs the parts of a method that an exporter lowered to its name. One object serves all methods. */
class Backend {
 public:
  virtual ~Backend() = default;
  /** Can it work on this machine? Asked at each load. */
  virtual bool is_available() const noexcept { return true; }
  /** The options that it understands; asked once. */
  virtual std::vector<OptionSpec> options() const { return {}; }
  /** Make ready what a method needs from @p payload, which lives as long as the delegate. */
  virtual std::unique_ptr<Delegate> init(InitContext &ctx, Span<const uint8_t> payload) = 0;
};

namespace detail {

/** A backend with what C needs of it. */
struct BackendShell {
  std::unique_ptr<Backend> backend;
  std::vector<OptionSpec> options;
  std::vector<etude_option_schema> schema;
  etude_backend vtable;

  explicit BackendShell(std::unique_ptr<Backend> from) : backend(std::move(from)), options(backend->options()) {
    for (const OptionSpec &spec : options) {
      etude_option_schema row;
      std::memset(&row, 0, sizeof row);
      row.key = spec.key.c_str();
      row.help = spec.help.c_str();
      row.scopes = ETUDE_SCOPE_BOTH;
      row.flags = spec.effect_now ? uint32_t{ETUDE_OPTION_EFFECT_NOW} : 0u;
      row.minimum = spec.minimum;
      row.maximum = spec.maximum;
      if (auto *truth = std::get_if<bool>(&spec.default_value)) {
        row.type = ETUDE_OPTION_BOOL, row.default_value = *truth ? 1 : 0;
      } else if (auto *number = std::get_if<int64_t>(&spec.default_value)) {
        row.type = ETUDE_OPTION_INT, row.default_value = *number;
      } else {
        row.type = ETUDE_OPTION_STRING, row.default_string = std::get<std::string>(spec.default_value).c_str();
      }
      schema.push_back(row);
    }
    std::memset(&vtable, 0, sizeof vtable);
    vtable.struct_size = sizeof vtable;
    vtable.abi_version = ETUDE_ABI_VERSION;
    vtable.is_available = [](void *self) { return of(self).backend->is_available(); };
    vtable.init = [](void *self, etude_init_context *ctx, etude_bytes payload, void **out_handle, etude_error *error) {
      return guard(error, [&] {
        InitContext context(ctx);
        *out_handle = of(self).backend->init(context, {static_cast<const uint8_t *>(payload.data), payload.size}).release();
      });
    };
    vtable.execute = [](void *, etude_execute_context *ctx, void *handle, etude_value *const *args, uint32_t count, etude_error *error) {
      return guard(error, [&] {
        ExecuteContext context(ctx, {args, count});
        static_cast<Delegate *>(handle)->execute(context);
      });
    };
    vtable.destroy = [](void *, void *handle) { delete static_cast<Delegate *>(handle); };
    vtable.option_schema = [](void *self, uint32_t *out_count) -> const etude_option_schema * {
      *out_count = static_cast<uint32_t>(of(self).schema.size());
      return of(self).schema.empty() ? nullptr : of(self).schema.data();
    };
    vtable.release = [](void *self) { delete static_cast<BackendShell *>(self); };
  }
  BackendShell(const BackendShell &) = delete;
  BackendShell &operator=(const BackendShell &) = delete;

  static BackendShell &of(void *self) { return *static_cast<BackendShell *>(self); }

  /** Run what may throw, and tell C. */
  template <class Action> static etude_status guard(etude_error *error, Action action) {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
    try {
      action();
      return ETUDE_OK;
    } catch (const Error &wrong) {
      etude_error_set(error, wrong.status(), "%s", wrong.what());
      etude_error_subject(error, wrong.subject().c_str());
      return wrong.status();
    } catch (const std::bad_alloc &) {
      return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "the backend has no memory");
    } catch (const std::exception &wrong) {
      return etude_error_set(error, ETUDE_INTERNAL, "%s", wrong.what());
    } catch (...) {
      return etude_error_set(error, ETUDE_INTERNAL, "the backend threw what is no exception of the standard library");
    }
#else
    (void)error;
    action();
    return ETUDE_OK;
#endif
  }
};

}  // namespace detail

/** Register a backend under the name that programs know it by, before anything else uses the runtime. AlreadyRegistered, … */
inline void register_backend(Runtime &runtime, const std::string &name, std::unique_ptr<Backend> backend) {
  auto shell = std::make_unique<detail::BackendShell>(std::move(backend));
  runtime.register_backend(name, shell->vtable, shell.get());
  shell.release();  // the runtime's now
}

}  // namespace etude

#endif  // ETUDE_BACKEND_HPP_
