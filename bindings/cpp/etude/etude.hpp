/** @file
 * etude for C++17: the C interface with owners, views and exceptions. Header only; link with libetude.
 *
 *     etude::Runtime runtime;
 *     etude::Program program(runtime, "model.pte");
 *     etude::Method forward = program.load("forward");
 *     std::vector<float> x(6, 1.0f);
 *     std::vector<etude::Output> out = forward({etude::Tensor::borrow(x.data(), {2, 3})});
 *     for (float y : out[0].tensor().data<float>()) { ... }
 *
 * Ownership: Runtime, Program and Method can be moved, not copied; a method keeps its program alive, and a program its
 * runtime, so they may end in any order. What a call returns as a view says how long it lives.
 * Errors: every call that fails throws ::etude::Error, with the status, subject and byte offset of the C interface, and
 * has changed nothing, except where etude/method.h says so.
 * Threads: as in C. A Runtime and a Program may be used by several threads, a Method by one at a time.
 */
#ifndef ETUDE_ETUDE_HPP_
#define ETUDE_ETUDE_HPP_

#include <etude/etude.h>
#include <etude/host.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace etude {

/** What went wrong. `what()` is one sentence: what, where, what to do. */
class Error : public std::runtime_error {
 public:
  /** Of a report, whose text may be longer than the struct's own room for it. */
  explicit Error(const etude_error &error)
      : std::runtime_error(reinterpret_cast<const char *>(&error) + offsetof(etude_error, message)),
        status_(error.status), subject_(error.subject), offset_(error.offset) {}
  Error(etude_status status, const std::string &message) : std::runtime_error(message), status_(status) {}

  /** An ETUDE_ status of etude/base.h. */
  etude_status status() const noexcept { return status_; }
  /** Its name as ExecuTorch spells it: "InvalidArgument". */
  const char *status_name() const noexcept { return etude_status_name(status_); }
  /** The method, operator, backend or option key at fault; may be empty. */
  const std::string &subject() const noexcept { return subject_; }
  /** The byte of the file at fault, if one is. */
  std::optional<uint64_t> offset() const noexcept {
    return offset_ == ETUDE_NO_OFFSET ? std::nullopt : std::optional<uint64_t>(offset_);
  }

 private:
  etude_status status_;
  std::string subject_;
  uint64_t offset_ = ETUDE_NO_OFFSET;
};

namespace detail {

/** An error report with room for long lists; throws if a call says so. */
class Check {
 public:
  Check() { std::memset(&room_, 0, sizeof room_), room_.error.struct_size = sizeof room_, room_.error.offset = ETUDE_NO_OFFSET; }
  operator etude_error *() noexcept { return &room_.error; }
  void operator()(etude_status status) const {
    if (status != ETUDE_OK) {
      throw Error(room_.error);
    }
  }

 private:
  struct {
    etude_error error;
    char more[4096];
  } room_;
};

template <class T> struct ScalarOf;
template <> struct ScalarOf<uint8_t> { static constexpr int8_t value = ETUDE_BYTE; };
template <> struct ScalarOf<int8_t> { static constexpr int8_t value = ETUDE_CHAR; };
template <> struct ScalarOf<int16_t> { static constexpr int8_t value = ETUDE_SHORT; };
template <> struct ScalarOf<int32_t> { static constexpr int8_t value = ETUDE_INT; };
template <> struct ScalarOf<int64_t> { static constexpr int8_t value = ETUDE_LONG; };
template <> struct ScalarOf<uint16_t> { static constexpr int8_t value = ETUDE_UINT16; };
template <> struct ScalarOf<uint32_t> { static constexpr int8_t value = ETUDE_UINT32; };
template <> struct ScalarOf<uint64_t> { static constexpr int8_t value = ETUDE_UINT64; };
template <> struct ScalarOf<float> { static constexpr int8_t value = ETUDE_FLOAT; };
template <> struct ScalarOf<double> { static constexpr int8_t value = ETUDE_DOUBLE; };
template <> struct ScalarOf<bool> { static constexpr int8_t value = ETUDE_BOOL; };

inline size_t count_elements(const std::vector<int32_t> &sizes) {
  size_t count = 1;
  for (const int32_t size : sizes) {
    if (size < 0 || (size > 0 && count > SIZE_MAX / static_cast<size_t>(size))) {
      throw Error(ETUDE_INVALID_ARGUMENT, "a tensor can't have a size of " + std::to_string(size));
    }
    count *= static_cast<size_t>(size);
  }
  return count;
}

}  // namespace detail

/** Consecutive elements that belong to somebody else: as std::span of C++20. */
template <class T> class Span {
 public:
  Span(T *data, size_t size) noexcept : data_(data), size_(size) {}
  T *data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T &operator[](size_t i) const noexcept { return data_[i]; }
  T *begin() const noexcept { return data_; }
  T *end() const noexcept { return data_ + size_; }

 private:
  T *data_;
  size_t size_;
};

/** A tensor that belongs to a method: lives until the method's next execution, or until an input is set. */
class TensorView {
 public:
  explicit TensorView(const etude_tensor *tensor) noexcept : tensor_(tensor) {}

  /** An element type of etude/tensor.h: ETUDE_FLOAT, … */
  int8_t scalar_type() const noexcept { return tensor_->scalar_type; }
  size_t rank() const noexcept { return tensor_->rank; }
  Span<const int32_t> sizes() const noexcept { return {tensor_->sizes, tensor_->rank}; }
  /** Strides of the dimensions, in elements. */
  Span<const int32_t> strides() const noexcept { return {tensor_->strides, tensor_->rank}; }
  size_t numel() const noexcept { return etude_tensor_numel(tensor_); }
  size_t nbytes() const noexcept { return etude_tensor_nbytes(tensor_); }
  /** Do the elements stand in row-major order? If not (channels-last), `to_vector` puts them so. */
  bool is_contiguous() const noexcept { return etude_tensor_is_contiguous(tensor_); }
  const void *bytes() const noexcept { return tensor_->data; }
  const etude_tensor *c() const noexcept { return tensor_; }

  /** The elements as they lie in memory. Throws InvalidType where they are none of T. */
  template <class T> Span<const T> data() const {
    if (scalar_type() != detail::ScalarOf<T>::value) {
      throw Error(ETUDE_INVALID_TYPE, std::string("the tensor holds ") + etude_scalar_name(scalar_type()) + ", not " +
                                          etude_scalar_name(detail::ScalarOf<T>::value));
    }
    return {static_cast<const T *>(tensor_->data), numel()};
  }

  /** A copy of the elements in row-major order. */
  template <class T> std::vector<T> to_vector() const {
    const Span<const T> all = data<T>();
    if (is_contiguous()) {
      return std::vector<T>(all.begin(), all.end());
    }
    std::vector<T> out;
    std::vector<int32_t> at(rank(), 0);
    out.reserve(all.size());
    for (size_t n = all.size(); n > 0; n--) {
      size_t place = 0;
      for (size_t k = 0; k < rank(); k++) {
        place += static_cast<size_t>(at[k]) * static_cast<size_t>(tensor_->strides[k]);
      }
      out.push_back(all[place]);
      for (size_t k = rank(); k-- > 0 && ++at[k] == tensor_->sizes[k];) {
        at[k] = 0;
      }
    }
    return out;
  }

 private:
  const etude_tensor *tensor_;
};

/** A tensor to hand over: sizes of its own, elements that are borrowed or its own. */
class Tensor {
 public:
  /** Over the caller's elements, which must stay, unchanged, as long as the method may read them (see Method). */
  template <class T> static Tensor borrow(T *data, std::vector<int32_t> sizes, std::vector<uint8_t> dim_order = {}) {
    const size_t nbytes = detail::count_elements(sizes) * sizeof(T);
    return Tensor(detail::ScalarOf<std::remove_const_t<T>>::value, const_cast<std::remove_const_t<T> *>(data), nbytes,
                  std::move(sizes), std::move(dim_order));
  }
  /** The same for any element type, with the bytes that are there. */
  static Tensor borrow(int8_t scalar_type, const void *data, size_t nbytes, std::vector<int32_t> sizes,
                       std::vector<uint8_t> dim_order = {}) {
    return Tensor(scalar_type, const_cast<void *>(data), nbytes, std::move(sizes), std::move(dim_order));
  }
  /** With a copy of @p elements, in row-major order. Throws InvalidArgument where their number is not that of the sizes. */
  template <class T> static Tensor from(const std::vector<T> &elements, std::vector<int32_t> sizes) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory: use Tensor::borrow");
    if (elements.size() != detail::count_elements(sizes)) {
      throw Error(ETUDE_INVALID_ARGUMENT, std::to_string(elements.size()) + " elements do not fill a tensor of " +
                                              std::to_string(detail::count_elements(sizes)));
    }
    auto own = std::make_shared<std::vector<T>>(elements);
    Tensor tensor = borrow(own->data(), std::move(sizes));
    tensor.own_ = std::move(own);
    return tensor;
  }

 private:
  friend class Value;
  Tensor(int8_t scalar_type, void *data, size_t nbytes, std::vector<int32_t> sizes, std::vector<uint8_t> dim_order)
      : scalar_type_(scalar_type), data_(data), nbytes_(nbytes), sizes_(std::move(sizes)),
        dim_order_(std::move(dim_order)) {
    if (sizes_.size() > ETUDE_MAX_RANK) {
      throw Error(ETUDE_NOT_SUPPORTED, "a tensor has at most " + std::to_string(ETUDE_MAX_RANK) + " dimensions");
    }
    if (!dim_order_.empty() && dim_order_.size() != sizes_.size()) {
      throw Error(ETUDE_INVALID_ARGUMENT, "dim_order must name each dimension once");
    }
    if (detail::count_elements(sizes_) * etude_scalar_size(scalar_type) > nbytes_) {
      throw Error(ETUDE_INVALID_ARGUMENT, "a tensor has more elements than memory");
    }
  }

  int8_t scalar_type_;
  void *data_;
  size_t nbytes_;
  std::vector<int32_t> sizes_;
  std::vector<uint8_t> dim_order_;
  std::shared_ptr<void> own_;
};

/** An input: a tensor, a number, a truth value, a text, or nothing (`nullptr`). */
class Value {
 public:
  Value(Tensor tensor) : held_(std::move(tensor)) {}
  Value(std::nullptr_t) {}
  Value(const char *text) : held_(std::string(text)) {}
  Value(std::string text) : held_(std::move(text)) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> Value(T number) {
    if constexpr (std::is_same_v<T, bool>) {
      held_ = number;
    } else if constexpr (std::is_floating_point_v<T>) {
      held_ = static_cast<double>(number);
    } else {
      held_ = static_cast<int64_t>(number);
    }
  }

 private:
  friend class Method;
  /** The C form, which points into this value and @p tensor. */
  etude_value c(etude_tensor &tensor) {
    etude_value value;
    std::memset(&value, 0, sizeof value);
    std::memset(&tensor, 0, sizeof tensor);
    if (auto *number = std::get_if<int64_t>(&held_)) {
      value.tag = ETUDE_VALUE_INT, value.as.int_value = *number;
    } else if (auto *real = std::get_if<double>(&held_)) {
      value.tag = ETUDE_VALUE_DOUBLE, value.as.double_value = *real;
    } else if (auto *truth = std::get_if<bool>(&held_)) {
      value.tag = ETUDE_VALUE_BOOL, value.as.bool_value = *truth;
    } else if (auto *text = std::get_if<std::string>(&held_)) {
      value.tag = ETUDE_VALUE_STRING, value.as.string = text->c_str(), value.count = static_cast<uint32_t>(text->size());
    } else if (auto *held = std::get_if<Tensor>(&held_)) {
      value.tag = ETUDE_VALUE_TENSOR, value.as.tensor = &tensor;
      tensor.data = held->data_, tensor.capacity = held->nbytes_, tensor.scalar_type = held->scalar_type_;
      tensor.sizes = held->sizes_.data(), tensor.rank = static_cast<uint8_t>(held->sizes_.size());
      tensor.dim_order = held->dim_order_.empty() ? nullptr : held->dim_order_.data();
      tensor.flags = ETUDE_TENSOR_READONLY;
    }
    return value;
  }

  std::variant<std::monostate, int64_t, double, bool, std::string, Tensor> held_;
};

/** An output of the last execution: a view, as long as a TensorView lives. */
class Output {
 public:
  explicit Output(const etude_value &value) noexcept : value_(value) {}

  /** An ETUDE_VALUE_ of etude/tensor.h. */
  int32_t kind() const noexcept { return value_.tag; }
  bool is_none() const noexcept { return value_.tag == ETUDE_VALUE_NONE; }
  bool is_tensor() const noexcept { return value_.tag == ETUDE_VALUE_TENSOR; }
  /** Each throws InvalidType where the output is of another kind. */
  TensorView tensor() const { return TensorView(expect(ETUDE_VALUE_TENSOR).as.tensor); }
  int64_t as_int() const { return expect(ETUDE_VALUE_INT).as.int_value; }
  double as_double() const { return expect(ETUDE_VALUE_DOUBLE).as.double_value; }
  bool as_bool() const { return expect(ETUDE_VALUE_BOOL).as.bool_value; }
  std::string_view as_string() const {
    const etude_value &value = expect(ETUDE_VALUE_STRING);
    return {value.as.string, value.count};
  }
  const etude_value &c() const noexcept { return value_; }

 private:
  const etude_value &expect(int32_t kind) const {
    if (value_.tag != kind) {
      throw Error(ETUDE_INVALID_TYPE, std::string("the output is of kind ") + etude_value_kind_name(value_.tag) +
                                          ", not " + etude_value_kind_name(kind));
    }
    return value_;
  }

  etude_value value_;
};

/** Value of an option of a backend. */
using Option = std::variant<bool, int64_t, std::string>;

/** Options by backend, then key: `{{"XnnpackBackend", {{"workspace_sharing_mode", int64_t{1}}}}}`. */
using Options = std::map<std::string, std::map<std::string, Option>>;

namespace detail {

/** Options in the C form, as long as this object lives. */
class OptionRows {
 public:
  explicit OptionRows(const Options &options) {
    Check check;
    items_.reserve(options.size());
    for (const auto &[backend, keys] : options) {
      items_.emplace_back(keys.size());
      etude_options list;
      etude_options_init(&list, items_.back().data(), static_cast<uint32_t>(keys.size()));
      for (const auto &[key, value] : keys) {
        if (auto *truth = std::get_if<bool>(&value)) {
          check(etude_options_add_bool(&list, key.c_str(), *truth, check));
        } else if (auto *number = std::get_if<int64_t>(&value)) {
          check(etude_options_add_int(&list, key.c_str(), *number, check));
        } else {
          check(etude_options_add_string(&list, key.c_str(), std::get<std::string>(value).c_str(), check));
        }
      }
      rows_.emplace_back();
      check(etude_backend_options_init(&rows_.back(), backend.c_str(), &list, check));
    }
  }
  const etude_backend_options *data() const noexcept { return rows_.empty() ? nullptr : rows_.data(); }
  uint32_t count() const noexcept { return static_cast<uint32_t>(rows_.size()); }

 private:
  std::vector<std::vector<etude_option>> items_;
  std::vector<etude_backend_options> rows_;
};

inline Option to_option(int32_t type, const etude_option_value &value) {
  switch (type) {
    case ETUDE_OPTION_BOOL: return value.bool_value;
    case ETUDE_OPTION_INT: return value.int_value;
    default: return std::string(value.string);
  }
}

}  // namespace detail

/** Kernels, backends and process-wide options. */
class Runtime {
 public:
  /** With the portable kernels and built-in backends; loops run on @p threads threads, the calling one included. */
  explicit Runtime(uint32_t threads = 1) {
    detail::Check check;
    etude_runtime *made = nullptr;
    check(etude_host_runtime_create(threads, &made, check));
    runtime_.reset(made, etude_host_runtime_free);
  }

  /** Names of the registered backends. */
  std::vector<std::string> backends() const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < etude_runtime_backend_count(c()); i++) {
      names.emplace_back(etude_runtime_backend_name(c(), i));
    }
    return names;
  }
  /** Set process-wide options, all or none of them. */
  void set_options(const Options &options) {
    const detail::OptionRows rows(options);
    detail::Check check;
    check(etude_runtime_set_option(c(), rows.data(), rows.count(), check));
  }
  void set_option(const std::string &backend, const std::string &key, Option value) {
    set_options({{backend, {{key, std::move(value)}}}});
  }
  /** The process-wide value of a key, or its default. */
  Option option(const std::string &backend, const std::string &key) const {
    detail::Check check;
    etude_option item;
    std::memset(&item, 0, sizeof item);
    if (key.size() >= sizeof item.key) {
      throw Error(ETUDE_NOT_FOUND, "no backend has a key as long as '" + key + "'");
    }
    std::memcpy(item.key, key.c_str(), key.size());
    check(etude_runtime_get_option(c(), backend.c_str(), &item, check));
    return detail::to_option(item.type, item.value);
  }
  /** The keys that a backend understands; lives as long as the backend is registered. */
  Span<const etude_option_schema> option_schema(const std::string &backend) const {
    detail::Check check;
    const etude_option_schema *schema = nullptr;
    uint32_t count = 0;
    check(etude_runtime_option_schema(c(), backend.c_str(), &schema, &count, check));
    return {schema, count};
  }
  /** Register a backend of one's own: see etude/backend.h. */
  void register_backend(const std::string &name, const etude_backend &backend, void *self) {
    detail::Check check;
    check(etude_runtime_register_backend(c(), name.c_str(), &backend, self, check));
  }
  etude_runtime *c() const noexcept { return runtime_.get(); }

 private:
  friend class Program;
  std::shared_ptr<etude_runtime> runtime_;
};

/** A function of a program, loaded, with memory of its own. */
class Method {
 public:
  Method(Method &&) = default;
  Method &operator=(Method &&) = default;

  std::string name() const { return etude_method_name(c()); }
  size_t input_count() const noexcept { return etude_method_input_count(c()); }
  size_t output_count() const noexcept { return etude_method_output_count(c()); }

  /** Set all inputs, or none. They are kept here until they are set again, so tensors with elements of their own may die. */
  void set_inputs(std::vector<Value> inputs) {
    detail::Check check;
    std::vector<etude_tensor> tensors(inputs.size());
    std::vector<etude_value> values(inputs.size());
    for (size_t i = 0; i < inputs.size(); i++) {
      values[i] = inputs[i].c(tensors[i]);
    }
    check(etude_method_set_inputs(c(), values.data(), static_cast<uint32_t>(values.size()), check));
    inputs_ = std::move(inputs);
  }
  void execute() {
    detail::Check check;
    check(etude_method_execute(c(), check));
  }
  /** End the execution that goes on in another thread: it throws an Error of status Cancelled. */
  void cancel() noexcept { etude_method_cancel(c()); }
  Output output(size_t index) const {
    detail::Check check;
    etude_value value;
    check(etude_method_get_output(c(), static_cast<uint32_t>(index), &value, check));
    return Output(value);
  }
  std::vector<Output> outputs() const {
    std::vector<Output> all;
    for (size_t i = 0; i < output_count(); i++) {
      all.push_back(output(i));
    }
    return all;
  }
  /** Set the inputs, execute, and return the outputs: views into the method. */
  std::vector<Output> operator()(std::vector<Value> inputs = {}) {
    set_inputs(std::move(inputs));
    execute();
    return outputs();
  }
  /** Take all state (mutable buffers) back to what it held when the program was loaded. */
  void reset_state() {
    detail::Check check;
    check(etude_method_reset_state(c(), UINT32_MAX, check));
  }
  etude_memory_info memory() const noexcept {
    etude_memory_info info;
    std::memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    etude_method_memory(c(), &info);
    return info;
  }
  etude_method *c() const noexcept { return method_.get(); }

 private:
  friend class Program;
  struct Free {
    void operator()(etude_method *method) const noexcept { etude_method_free(method); }
  };
  Method(std::shared_ptr<etude_program> program, etude_method *method)
      : program_(std::move(program)), method_(method) {}

  std::shared_ptr<etude_program> program_;
  std::vector<Value> inputs_;  // outlive the method, which may borrow their elements
  std::unique_ptr<etude_method, Free> method_;
};

/** A `.pte` file and its data files. */
class Program {
 public:
  /** Open a file; @p data_files are `.ptd` files, @p options go to every method that is loaded. */
  Program(const Runtime &runtime, const std::string &path, const std::vector<std::string> &data_files = {},
          const Options &options = {}) {
    Loaders loaders;
    detail::Check check;
    etude_data_loader file;
    check(etude_data_from_file(path.c_str(), ETUDE_FILE_MAP, &file, check));
    loaders.add(file);
    for (const std::string &data : data_files) {
      check(etude_data_from_file(data.c_str(), ETUDE_FILE_MAP, &file, check));
      loaders.add(file);
    }
    load(runtime, loaders, options, false);
  }
  /** Over the bytes of a file, which are copied. */
  Program(const Runtime &runtime, const void *data, size_t size, const Options &options = {}) {
    Loaders loaders;
    loaders.add(etude_data_from_memory(data, size));
    load(runtime, loaders, options, true);
  }

  std::vector<std::string> method_names() const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < etude_program_method_count(c()); i++) {
      names.emplace_back(etude_program_method_name(c(), i));
    }
    return names;
  }
  /** Load a method; @p options override, key by key, those of the program. */
  Method load(const std::string &name = "forward", const Options &options = {}) const {
    const detail::OptionRows rows(options);
    detail::Check check;
    etude_method_config config = ETUDE_METHOD_CONFIG_INIT;
    etude_method *method = nullptr;
    config.backend_options = rows.data();
    config.backend_options_count = rows.count();
    check(etude_method_load(c(), name.c_str(), &config, &method, check));
    return Method(program_, method);
  }
  etude_program *c() const noexcept { return program_.get(); }

 private:
  /** Open files: closed here unless a program has taken them. */
  struct Loaders {
    std::vector<etude_data_loader> all;
    bool taken = false;
    void add(const etude_data_loader &loader) { all.push_back(loader); }
    ~Loaders() {
      for (const etude_data_loader &loader : all) {
        if (!taken && loader.close != nullptr) {
          loader.close(loader.self);
        }
      }
    }
  };

  void load(const Runtime &runtime, Loaders &loaders, const Options &options, bool copy) {
    const detail::OptionRows rows(options);
    detail::Check check;
    etude_program_config config = ETUDE_PROGRAM_CONFIG_INIT;
    etude_program *made = nullptr;
    config.external = loaders.all.data() + 1;
    config.external_count = static_cast<uint32_t>(loaders.all.size() - 1);
    config.backend_options = rows.data();
    config.backend_options_count = rows.count();
    config.copy = copy;
    check(etude_program_load(runtime.c(), loaders.all.data(), &config, &made, check));
    loaders.taken = true;
    program_.reset(made, [keep = runtime.runtime_](etude_program *program) { etude_program_free(program); });
  }

  std::shared_ptr<etude_program> program_;
};

}  // namespace etude

#endif  // ETUDE_ETUDE_HPP_
