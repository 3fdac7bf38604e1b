/** @file
 * etude for C++17: the C interface with owners, views and exceptions. Header only; link with libetude.
 *
 *     etude::Runtime runtime;
 *     etude::Program program(runtime, "model.pte");
 *     etude::Method forward = program.load("forward");
 *     std::vector<float> x(6, 1.0f);
 *     std::vector<etude::Output> out = forward({etude::Tensor::borrow(x, {2, 3})});
 *     for (float y : out[0].tensor().data<float>()) { ... }
 *
 * Ownership: Runtime, Program and Method can be moved, not copied; a method keeps its program alive, and a program its
 * runtime, so they may end in any order. What a call returns as a view says how long it lives.
 * Errors: every call that fails throws ::etude::Error, with the status, subject and byte offset of the C interface, and
 * has changed nothing, except where etude/method.h says so. Compiled without exceptions (`-fno-exceptions`), a call that
 * fails prints its sentence and aborts: who must go on after a failure there has the statuses of C.
 * Threads: as in C. A Runtime and a Program may be used by several threads, a Method by one at a time, but for `cancel`.
 * Backends written in C++: etude/backend.hpp.
 */
#ifndef ETUDE_ETUDE_HPP_
#define ETUDE_ETUDE_HPP_

#include <etude/etude.h>
#include <etude/host.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
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

[[noreturn]] inline void raise(const Error &error) {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
  throw error;
#else
  (void)std::fprintf(stderr, "etude: %s\n", error.what());
  std::abort();
#endif
}

[[noreturn]] inline void fail(etude_status status, const std::string &message) { raise(Error(status, message)); }

/** An error report with room for long lists; throws if a call says so. */
class Check {
 public:
  Check() { std::memset(&room_, 0, sizeof room_), room_.error.struct_size = sizeof room_, room_.error.offset = ETUDE_NO_OFFSET; }
  operator etude_error *() noexcept { return &room_.error; }
  void operator()(etude_status status) const {
    if (status != ETUDE_OK) {
      raise(Error(room_.error));
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

inline std::string to_text(const std::vector<int32_t> &sizes) {
  std::string text = "[";
  for (const int32_t size : sizes) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  }
  return text + "]";
}

inline size_t count_elements(const std::vector<int32_t> &sizes) {
  size_t count = 1;
  for (const int32_t size : sizes) {
    if (size < 0 || (size > 0 && count > SIZE_MAX / 64 / static_cast<size_t>(size))) {
      fail(ETUDE_INVALID_ARGUMENT, "a tensor can't have the sizes " + to_text(sizes));
    }
    count *= static_cast<size_t>(size);
  }
  return count;
}

inline void check_elements(size_t count, const std::vector<int32_t> &sizes) {
  if (count != count_elements(sizes)) {
    fail(ETUDE_INVALID_ARGUMENT, std::to_string(count) + " elements do not fill a tensor of sizes " + to_text(sizes));
  }
}

/** A struct that the library fills in. */
template <class T> T sized() {
  T info;
  std::memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  return info;
}

}  // namespace detail

/** Consecutive elements that belong to somebody else: what std::span is in C++20, to which it converts. */
template <class T> class Span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using iterator = T *;
  constexpr Span() noexcept : data_(nullptr), size_(0) {}
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
  /** Dimensions as they lie in memory, outermost first; empty = row-major. */
  Span<const uint8_t> dim_order() const noexcept {
    return {tensor_->dim_order, tensor_->dim_order == nullptr ? size_t{0} : tensor_->rank};
  }
  const void *bytes() const noexcept { return tensor_->data; }
  const etude_tensor *c() const noexcept { return tensor_; }

  /** The elements as they lie in memory. Throws InvalidType where they are none of T. */
  template <class T> Span<const T> data() const {
    if (scalar_type() != detail::ScalarOf<T>::value) {
      detail::fail(ETUDE_INVALID_TYPE, std::string("the tensor holds ") + etude_scalar_name(scalar_type()) + ", not " +
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
  /**
   * Over the elements of a container, as many as the sizes say, or InvalidArgument. They must stay, unchanged, until the
   * method has other inputs or ends.
   */
  template <class C, class T = std::remove_pointer_t<decltype(std::declval<const C &>().data())>>
  static Tensor borrow(const C &elements, std::vector<int32_t> sizes) {
    detail::check_elements(elements.size(), sizes);
    return borrow(elements.data(), std::move(sizes));
  }
  template <class C, class T = std::remove_pointer_t<decltype(std::declval<const C &>().data())>>
  static Tensor borrow(const C &&elements, std::vector<int32_t> sizes) = delete;
  /** The same, of as many elements as the sizes say, in row-major order unless @p dim_order says otherwise. */
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
    detail::check_elements(elements.size(), sizes);
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
      detail::fail(ETUDE_NOT_SUPPORTED, "a tensor has at most " + std::to_string(ETUDE_MAX_RANK) + " dimensions");
    }
    uint32_t named = 0;
    for (const uint8_t dim : dim_order_) {
      named |= dim < sizes_.size() ? uint32_t{1} << dim : 0;
    }
    if (!dim_order_.empty() && (dim_order_.size() != sizes_.size() || named != (uint32_t{1} << sizes_.size()) - 1)) {
      detail::fail(ETUDE_INVALID_ARGUMENT, "the dim order is invalid: it must name each dimension once");
    }
    if (detail::count_elements(sizes_) * etude_scalar_size(scalar_type) > nbytes_) {
      detail::fail(ETUDE_INVALID_ARGUMENT,
                   std::to_string(nbytes_) + " bytes do not hold a tensor of sizes " + detail::to_text(sizes_));
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
      detail::fail(ETUDE_INVALID_TYPE, std::string("the output is of kind ") + etude_value_kind_name(value_.tag) +
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
    rows_.reserve(options.size());
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

/** What an object holds: InvalidState where it was moved from. */
template <class Held> Held *live(Held *held, const char *what) {
  if (held == nullptr) {
    fail(ETUDE_INVALID_STATE, std::string("the ") + what + " was moved to another object: use that one");
  }
  return held;
}

inline Option to_option(int32_t type, const etude_option_value &value) {
  switch (type) {
    case ETUDE_OPTION_BOOL: return value.bool_value;
    case ETUDE_OPTION_INT: return value.int_value;
    default: return std::string(value.string);
  }
}

}  // namespace detail

/** The value of an option as a method sees it, and where it comes from. */
struct OptionExplanation {
  Option value;
  int32_t origin; /**< an ETUDE_ORIGIN_ value: default, process, program, method */
  /** What each layer has, by ETUDE_ORIGIN_ value; none where it says nothing. */
  std::optional<Option> layers[ETUDE_ORIGIN_COUNT];
};

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
    for (uint32_t i = 0; i < etude_runtime_backend_count(live()); i++) {
      names.emplace_back(etude_runtime_backend_name(live(), i));
    }
    return names;
  }
  /** Set process-wide options, all or none of them. */
  void set_options(const Options &options) {
    const detail::OptionRows rows(options);
    detail::Check check;
    check(etude_runtime_set_option(live(), rows.data(), rows.count(), check));
  }
  void set_option(const std::string &backend, const std::string &key, Option value) {
    set_options({{backend, {{key, std::move(value)}}}});
  }
  /** The process-wide value of a key, or its default. */
  Option option(const std::string &backend, const std::string &key) const {
    detail::Check check;
    etude_option item;
    etude_options list;
    std::memset(&item, 0, sizeof item);
    etude_options_init(&list, &item, 1);
    check(etude_options_add_bool(&list, key.c_str(), false, check));
    check(etude_runtime_get_option(live(), backend.c_str(), &item, check));
    return detail::to_option(item.type, item.value);
  }
  /** Take a key back to its default; all of the backend's with an empty @p key. */
  void reset_options(const std::string &backend, const std::string &key = {}) {
    detail::Check check;
    check(etude_runtime_reset_option(live(), backend.c_str(), key.empty() ? nullptr : key.c_str(), check));
  }
  /** The keys that a backend understands; lives as long as the backend is registered. */
  Span<const etude_option_schema> option_schema(const std::string &backend) const {
    detail::Check check;
    const etude_option_schema *schema = nullptr;
    uint32_t count = 0;
    check(etude_runtime_option_schema(live(), backend.c_str(), &schema, &count, check));
    return {schema, count};
  }
  /** Register a backend in the form of C, which must outlive the runtime, before it has programs; see etude/backend.hpp. */
  void register_backend(const std::string &name, const etude_backend &backend, void *self) {
    detail::Check check;
    check(etude_runtime_register_backend(live(), name.c_str(), &backend, self, check));
  }
  etude_runtime *c() const noexcept { return runtime_.get(); }

 private:
  friend class Program;
  etude_runtime *live() const { return detail::live(c(), "runtime"); }
  std::shared_ptr<etude_runtime> runtime_;
};

/** What a program says of an input or output. */
struct ValueInfo {
  std::string name;        /**< fully qualified, or empty */
  int32_t kind;            /**< an ETUDE_VALUE_ */
  int8_t scalar_type;      /**< tensors: ETUDE_FLOAT, … */
  std::vector<int32_t> sizes; /**< tensors: the largest */
  std::vector<uint8_t> dim_order;
  uint64_t nbytes; /**< tensors: at the largest sizes */
  bool dynamic;    /**< tensors: sizes may be smaller */
  /** Int, Double, Bool, String: the value in the file. */
  std::variant<std::monostate, int64_t, double, bool, std::string> value;
};

/** What a program says of a method, without loading it. */
struct MethodInfo {
  std::string name;
  std::vector<ValueInfo> inputs, outputs;
  uint32_t instruction_count;
  std::vector<std::string> operators;         /**< with overloads, each once */
  std::vector<std::string> missing_operators; /**< those, with dtypes, that this build has no kernel for */
  std::vector<std::string> delegates;         /**< the backend of each */
  std::vector<uint64_t> buffers;              /**< bytes of each planned buffer */
};

/** What a method may take; the defaults are those of all languages. */
struct Limits {
  uint64_t constant_limit = uint64_t{256} << 20; /**< bytes for what is computed once, at load, as packed weights; 0 = none */
  uint64_t memory_limit = 0;                     /**< bytes that the file may ask for; 0 = 1 GiB */
  uint64_t instruction_limit = 0;                /**< instructions of one execution; 0 = 10,000,000 */
  uint64_t work_limit = 0;                       /**< work of one execution, see etude/method.h; 0 = 2^41 */
};

/** Time of an instruction or, at depth 1, of a node of what a backend runs for one. */
struct ProfileRow {
  std::string name; /**< operator, backend or node; empty for moves and jumps */
  uint32_t instruction, node, depth;
  uint64_t nanoseconds;
  uint64_t bytes; /**< of the tensors that it got and gave */
  uint64_t flops; /**< 0 = not known */
};

/** A function of a program, loaded, with memory of its own. One that was moved from throws InvalidState; so do programs and runtimes. */
class Method {
 public:
  Method(Method &&) = default;
  Method &operator=(Method &&other) noexcept {
    if (this == &other) {
      return *this;
    }
    std::swap(program_, other.program_);
    std::swap(inputs_, other.inputs_);
    std::swap(interrupt_, other.interrupt_);
    std::swap(method_, other.method_);
    Method(std::move(other));  // what this was ends as a whole, the method before its program
    return *this;
  }

  std::string name() const { return etude_method_name(live()); }
  size_t input_count() const { return etude_method_input_count(live()); }
  size_t output_count() const { return etude_method_output_count(live()); }

  /** Set all inputs, or none. They are kept here until they are set again, so tensors with elements of their own may die. */
  void set_inputs(std::vector<Value> inputs) {
    detail::Check check;
    std::vector<etude_tensor> tensors(inputs.size());
    std::vector<etude_value> values(inputs.size());
    for (size_t i = 0; i < inputs.size(); i++) {
      values[i] = inputs[i].c(tensors[i]);
    }
    check(etude_method_set_inputs(live(), values.data(), static_cast<uint32_t>(values.size()), check));
    inputs_ = std::move(inputs);
  }
  void execute() {
    detail::Check check;
    check(etude_method_execute(live(), check));
  }
  /** End the execution that goes on in another thread: it throws an Error of status Cancelled. Where there is none, the next. */
  void cancel() const { etude_method_cancel(live()); }
  /** Ask @p interrupted about every millisecond of an execution, on its thread, whether to end it. It must not throw. None: {}. */
  void set_interrupt(std::function<bool()> interrupted) {
    auto own = interrupted ? std::make_unique<std::function<bool()>>(std::move(interrupted)) : nullptr;
    bool (*ask)(void *) = [](void *self) { return (*static_cast<std::function<bool()> *>(self))(); };
    etude_method_set_interrupt(live(), own ? ask : nullptr, own.get());
    interrupt_ = std::move(own);
  }
  Output output(size_t index) const {
    detail::Check check;
    etude_value value;
    check(etude_method_get_output(live(), static_cast<uint32_t>(index), &value, check));
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
  /** As `operator()`, and where the time went. */
  std::vector<ProfileRow> profile(std::vector<Value> inputs = {}) {
    std::vector<etude_profile_row> rows(16384);
    etude_profile profile;
    set_inputs(std::move(inputs));
    etude_profile_start(&profile, rows.data(), rows.size(), nullptr, 0);
    etude_method_set_trace_after(live(), etude_profile_trace, &profile);
    detail::Check check;
    const etude_status status = etude_method_execute(live(), check);
    etude_method_set_trace(live(), nullptr, nullptr);
    check(status);
    std::vector<ProfileRow> all;
    for (size_t i = 0; i < profile.row_count; i++) {
      const etude_profile_row &row = rows[i];
      all.push_back({row.name == nullptr ? "" : row.name, row.instruction, row.node, row.depth, row.total, row.bytes, row.flops});
    }
    return all;
  }

  /** Names of the mutable buffers. */
  std::vector<std::string> state_names() const {
    std::vector<std::string> names;
    detail::Check check;
    for (uint32_t i = 0; i < etude_method_state_count(live()); i++) {
      const char *name = nullptr;
      check(etude_method_state(live(), i, &name, nullptr, check));
      names.emplace_back(name);
    }
    return names;
  }
  /** The bytes of a mutable buffer, copied. NotFound lists those that exist. */
  std::vector<uint8_t> read_state(const std::string &name) const {
    detail::Check check;
    etude_tensor tensor;
    const uint32_t index = find_state(name);
    check(etude_method_state(live(), index, nullptr, &tensor, check));
    std::vector<uint8_t> bytes(etude_tensor_nbytes(&tensor));
    check(etude_method_read_state(live(), index, bytes.data(), bytes.size(), check));
    return bytes;
  }
  /** Overwrite a mutable buffer with as many bytes as it has. */
  void write_state(const std::string &name, const void *bytes, size_t size) {
    detail::Check check;
    check(etude_method_write_state(live(), find_state(name), bytes, size, check));
  }
  /** Take a mutable buffer, or all of them, back to what it held when the program was loaded. */
  void reset_state(const std::string &name) {
    detail::Check check;
    check(etude_method_reset_state(live(), find_state(name), check));
  }
  void reset_state() {
    detail::Check check;
    check(etude_method_reset_state(live(), UINT32_MAX, check));
  }
  /** Start the method's random numbers anew. */
  void set_seed(uint64_t seed) { etude_method_set_seed(live(), seed); }
  /** What the method takes of its memory now, in bytes. */
  etude_memory_info memory() const {
    auto info = detail::sized<etude_memory_info>();
    etude_method_memory(live(), &info);
    return info;
  }
  /** The value of an option as this method sees it, and where it comes from. */
  OptionExplanation explain_option(const std::string &backend, const std::string &key) const {
    detail::Check check;
    auto told = detail::sized<etude_option_explanation>();
    check(etude_method_explain_option(live(), backend.c_str(), key.c_str(), &told, check));
    OptionExplanation explanation{detail::to_option(told.type, told.values[told.winner]), told.winner, {}};
    for (size_t i = 0; i < ETUDE_ORIGIN_COUNT; i++) {
      if (((told.is_set >> i) & 1u) != 0) {
        explanation.layers[i] = detail::to_option(told.type, told.values[i]);
      }
    }
    return explanation;
  }
  etude_method *c() const noexcept { return method_.get(); }

 private:
  friend class Program;
  struct Free {
    void operator()(etude_method *method) const noexcept { etude_method_free(method); }
  };
  Method(std::shared_ptr<etude_program> program, etude_method *method)
      : program_(std::move(program)), method_(method) {}
  etude_method *live() const { return detail::live(c(), "method"); }
  uint32_t find_state(const std::string &name) const {
    detail::Check check;
    uint32_t index = 0;
    check(etude_method_find_state(live(), name.c_str(), &index, check));
    return index;
  }

  std::shared_ptr<etude_program> program_;
  std::vector<Value> inputs_;  // outlive the method, which may borrow their elements
  std::unique_ptr<std::function<bool()>> interrupt_;
  std::unique_ptr<etude_method, Free> method_;
};

/** A `.pte` file and its data files. */
class Program {
 public:
  /**
   * Open a file; @p data_files are `.ptd` files, @p options go to every method that is loaded. Files are mapped: they must
   * not be written over or shortened while the program or a method of it is there (SIGBUS); from_bytes() reads a copy.
   */
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
  static Program from_bytes(const Runtime &runtime, const void *data, size_t size, const Options &options = {}) {
    Program program;
    Loaders loaders;
    loaders.add(etude_data_from_memory(data, size));
    program.load(runtime, loaders, options, true);
    return program;
  }
  /** Over the bytes of a file, which are read in place and must outlive the program and its methods. */
  static Program borrow(const Runtime &runtime, const void *data, size_t size, const Options &options = {}) {
    Program program;
    Loaders loaders;
    loaders.add(etude_data_from_memory(data, size));
    program.load(runtime, loaders, options, false);
    return program;
  }

  std::vector<std::string> method_names() const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < etude_program_method_count(live()); i++) {
      names.emplace_back(etude_program_method_name(live(), i));
    }
    return names;
  }
  /** What the program says of a method, which is not loaded for it. NotFound lists those that exist. */
  MethodInfo method(const std::string &name) const {
    detail::Check check;
    auto counts = detail::sized<etude_method_info>();
    const uint32_t index = find(name);
    check(etude_program_method_info(live(), index, &counts, check));
    MethodInfo info{name, {}, {}, counts.instruction_count, {}, {}, {}, {}};
    auto value = detail::sized<etude_value_info>();
    for (uint32_t i = 0; i < counts.input_count; i++) {
      check(etude_program_input_info(live(), index, i, &value, check));
      info.inputs.push_back(describe(value));
    }
    for (uint32_t i = 0; i < counts.output_count; i++) {
      check(etude_program_output_info(live(), index, i, &value, check));
      info.outputs.push_back(describe(value));
    }
    char text[512];
    for (uint32_t i = 0; i < counts.operator_count; i++) {
      check(etude_program_operator_name(live(), index, i, text, sizeof text, check));
      info.operators.emplace_back(text);
    }
    for (uint32_t i = 0; etude_program_missing_operator(live(), index, i, text, sizeof text, nullptr) == ETUDE_OK; i++) {
      info.missing_operators.emplace_back(text);
    }
    for (uint32_t i = 0; i < counts.delegate_count; i++) {
      const char *backend = nullptr;
      check(etude_program_delegate_backend(live(), index, i, &backend, check));
      info.delegates.emplace_back(backend);
    }
    for (uint32_t i = 0; i < counts.buffer_count; i++) {
      uint64_t size = 0;
      check(etude_program_buffer_size(live(), index, i, &size, check));
      info.buffers.push_back(size);
    }
    return info;
  }
  /** Bytes that loading and running a method would take, with inputs of the largest sizes. */
  etude_memory_info memory(const std::string &name) const {
    detail::Check check;
    auto info = detail::sized<etude_memory_info>();
    check(etude_program_method_memory(live(), find(name), &info, check));
    return info;
  }
  /** Load a method; @p options override, key by key, those of the program. */
  Method load(const std::string &name = "forward", const Options &options = {}, const Limits &limits = {}) const {
    const detail::OptionRows rows(options);
    detail::Check check;
    auto config = detail::sized<etude_method_config>();
    etude_method *method = nullptr;
    config.backend_options = rows.data();
    config.backend_options_count = rows.count();
    config.constant_limit = limits.constant_limit;
    config.memory_limit = limits.memory_limit;
    config.instruction_limit = limits.instruction_limit;
    config.work_limit = limits.work_limit;
    check(etude_method_load(live(), name.c_str(), &config, &method, check));
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

  Program() = default;
  etude_program *live() const { return detail::live(c(), "program"); }
  uint32_t find(const std::string &name) const {
    detail::Check check;
    uint32_t index = 0;
    check(etude_program_find_method(live(), name.c_str(), &index, check));
    return index;
  }
  static ValueInfo describe(const etude_value_info &from) {
    ValueInfo info{from.name == nullptr ? "" : from.name,
                   from.tag,
                   static_cast<int8_t>(from.scalar_type),
                   {from.sizes, from.sizes + from.rank},
                   {from.dim_order, from.dim_order + from.rank},
                   from.nbytes,
                   (from.flags & ETUDE_TENSOR_DYNAMIC) != 0,
                   {}};
    switch (from.tag) {
      case ETUDE_VALUE_INT: info.value = from.constant.as.int_value; break;
      case ETUDE_VALUE_DOUBLE: info.value = from.constant.as.double_value; break;
      case ETUDE_VALUE_BOOL: info.value = from.constant.as.bool_value; break;
      case ETUDE_VALUE_STRING: info.value = std::string(from.constant.as.string, from.constant.count); break;
      default: break;
    }
    return info;
  }

  void load(const Runtime &runtime, Loaders &loaders, const Options &options, bool copy) {
    const detail::OptionRows rows(options);
    detail::Check check;
    auto config = detail::sized<etude_program_config>();
    etude_program *made = nullptr;
    config.external = loaders.all.data() + 1;
    config.external_count = static_cast<uint32_t>(loaders.all.size() - 1);
    config.backend_options = rows.data();
    config.backend_options_count = rows.count();
    config.copy = copy;
    check(etude_program_load(runtime.live(), loaders.all.data(), &config, &made, check));
    loaders.taken = true;
    program_.reset(made, [keep = runtime.runtime_](etude_program *program) { etude_program_free(program); });
  }

  std::shared_ptr<etude_program> program_;
};

}  // namespace etude

#endif  // ETUDE_ETUDE_HPP_
