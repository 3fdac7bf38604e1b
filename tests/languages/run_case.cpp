// The cases of the corpus through etude.hpp: see languages.py for what is expected of a runner.
#include <etude/etude.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <unordered_map>

namespace {

std::vector<char> read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error(path + ": cannot be read");
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

class Reader {
 public:
  explicit Reader(std::vector<char> bytes) : bytes_(std::move(bytes)) {}
  template <class T> T take() {
    T value;
    std::memcpy(&value, skip(sizeof value), sizeof value);
    return value;
  }
  std::string text() {
    const uint32_t size = take<uint32_t>();
    return {skip(size), size};
  }
  etude::Value value() {
    switch (const int32_t kind = take<int32_t>()) {
      case ETUDE_VALUE_NONE: return nullptr;
      case ETUDE_VALUE_INT: return take<int64_t>();
      case ETUDE_VALUE_BOOL: return take<int64_t>() != 0;
      case ETUDE_VALUE_DOUBLE: return take<double>();
      case ETUDE_VALUE_STRING: return text();
      case ETUDE_VALUE_TENSOR: return tensor();
      default: throw std::runtime_error("a value of unknown kind " + std::to_string(kind));
    }
  }

 private:
  etude::Tensor tensor() {
    const auto type = static_cast<int8_t>(take<uint32_t>());
    const uint32_t rank = take<uint32_t>();
    std::vector<int32_t> sizes;
    std::vector<uint8_t> order;
    for (uint32_t i = 0; i < rank; i++) {
      sizes.push_back(take<int32_t>());
    }
    for (uint32_t i = 0; i < rank; i++) {
      order.push_back(static_cast<uint8_t>(take<uint32_t>()));
    }
    const uint32_t size = take<uint32_t>();
    skip((16 - at_ % 16) % 16);
    return etude::Tensor::borrow(type, skip(size), size, sizes, order);
  }
  const char *skip(size_t size) {
    const char *at = bytes_.data() + at_;
    if (size > bytes_.size() - at_) {
      throw std::runtime_error("the calls end too early");
    }
    at_ += size;
    return at;
  }

  std::vector<char> bytes_;
  size_t at_ = 0;
};

class Writer {
 public:
  template <class T> void put(T value) { bytes(&value, sizeof value); }
  void bytes(const void *data, size_t size) {
    out_.insert(out_.end(), static_cast<const char *>(data), static_cast<const char *>(data) + size);
  }
  void value(const etude::Output &value) {
    put(value.kind());
    switch (value.kind()) {
      case ETUDE_VALUE_INT: put(value.as_int()); break;
      case ETUDE_VALUE_BOOL: put(int64_t{value.as_bool()}); break;
      case ETUDE_VALUE_DOUBLE: put(value.as_double()); break;
      case ETUDE_VALUE_STRING:
        put(static_cast<uint32_t>(value.as_string().size()));
        bytes(value.as_string().data(), value.as_string().size());
        break;
      case ETUDE_VALUE_TENSOR: tensor(value.tensor()); break;
      default: break;
    }
  }
  void save(const std::string &path) const {
    std::ofstream(path, std::ios::binary).write(out_.data(), static_cast<std::streamsize>(out_.size()));
  }

 private:
  void tensor(const etude::TensorView &tensor) {
    put(uint32_t(tensor.scalar_type()));
    put(uint32_t(tensor.rank()));
    for (const int32_t size : tensor.sizes()) {
      put(size);
    }
    for (size_t i = 0; i < tensor.rank(); i++) {
      put(uint32_t(tensor.c()->dim_order == nullptr ? i : tensor.c()->dim_order[i]));
    }
    put(uint32_t(tensor.nbytes()));
    out_.resize((out_.size() + 15) / 16 * 16);
    bytes(tensor.bytes(), tensor.nbytes());
  }

  std::vector<char> out_;
};

void run(const std::string &model, const std::string &calls, const std::string &results,
         const std::vector<std::string> &data_files) {
  const etude::Program program(etude::Runtime(2), model, data_files);
  std::unordered_map<std::string, etude::Method> methods;
  Reader in(read_file(calls));
  Writer out;
  for (uint32_t left = in.take<uint32_t>(); left > 0; left--) {
    const std::string name = in.text();
    if (methods.count(name) == 0) {
      methods.emplace(name, program.load(name));
    }
    std::vector<etude::Value> inputs;
    for (uint32_t n = in.take<uint32_t>(); n > 0; n--) {
      inputs.push_back(in.value());
    }
    const std::vector<etude::Output> outputs = methods.at(name)(std::move(inputs));
    out.put(uint32_t(outputs.size()));
    for (const etude::Output &output : outputs) {
      out.value(output);
    }
  }
  out.save(results);
}

template <class Action> void attempt(const char *what, Action action) {
  try {
    action();
    std::cout << what << ": ok\n";
  } catch (const etude::Error &error) {
    std::cout << what << ": " << error.status_name() << " '" << error.subject() << "' " << error.what() << "\n";
  }
}

void errors(const std::string &model) {
  using namespace std::string_literals;
  const std::string xnn = "XnnpackBackend", mode = "workspace_sharing_mode";
  etude::Runtime runtime;
  attempt("set", [&] { runtime.set_option(xnn, mode, int64_t{1}); });
  std::cout << "get: " << std::get<int64_t>(runtime.option(xnn, mode)) << "\n";
  attempt("set out of range", [&] { runtime.set_option(xnn, mode, int64_t{3}); });
  attempt("set of wrong type", [&] { runtime.set_option(xnn, mode, "one"s); });
  attempt("set unknown key", [&] { runtime.set_option(xnn, "workspace_mode", int64_t{1}); });
  attempt("set unknown backend", [&] { runtime.set_option("XnnBackend", mode, int64_t{1}); });
  attempt("set with one unknown", [&] { runtime.set_options({{xnn, {{mode, int64_t{2}}, {"none", true}}}}); });
  attempt("set long key", [&] { runtime.set_option(xnn, std::string(64, 'k'), int64_t{1}); });
  attempt("set empty key", [&] { runtime.set_option(xnn, "", int64_t{1}); });
  attempt("get unknown key", [&] { runtime.option(xnn, "workspace_mode"); });
  attempt("reset unknown key", [&] { runtime.reset_options(xnn, "workspace_mode"); });
  attempt("schema of unknown backend", [&] { runtime.option_schema("XnnBackend"); });
  std::cout << "get: " << std::get<int64_t>(runtime.option(xnn, mode)) << "\n";
  attempt("reset", [&] { runtime.reset_options(xnn); });
  std::cout << "get: " << std::get<int64_t>(runtime.option(xnn, mode)) << "\n";
  const etude::Program program(runtime, model);
  attempt("load", [&] { program.load("forward", {{xnn, {{mode, int64_t{0}}}}}); });
  attempt("load out of range", [&] { program.load("forward", {{xnn, {{mode, int64_t{3}}}}}); });
  attempt("load unused option", [&] { program.load("forward", {{"NullBackend", {{"key", int64_t{1}}}}}); });
  attempt("load unknown method", [&] { program.load("backward"); });
  attempt("load within 100 bytes", [&] { program.load("forward", {}, etude::Limits{0, 100, 0, 0}); });
  attempt("describe unknown method", [&] { program.method("backward"); });
  etude::Method method = program.load();
  attempt("execute without inputs", [&] { method.execute(); });
  attempt("too few inputs", [&] { method({}); });
  attempt("explain unknown key", [&] { method.explain_option(xnn, "workspace_mode"); });
  attempt("reset unknown state", [&] { method.reset_state("cache"); });
  const std::vector<int64_t> whole(6);
  attempt("input of wrong type", [&] { method({1}); });
  attempt("input of wrong dtype", [&] { method({etude::Tensor::borrow(whole, {2, 3})}); });
  attempt("no such file", [&] { etude::Program(runtime, model + ".missing"); });
  attempt("no such data file", [&] { etude::Program(runtime, model, {model + ".ptd"}); });
  std::vector<char> bytes = read_file(model);
  attempt("copied", [&] { etude::Program::from_bytes(runtime, bytes.data(), bytes.size()).load(); });
  attempt("cut short", [&] { etude::Program::from_bytes(runtime, bytes.data(), bytes.size() / 2).load(); });
  attempt("no program", [&] { etude::Program::from_bytes(runtime, "not a program", 13); });
}

}  // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args.size() == 2 && args[0] == "--errors") {
      errors(args[1]);
    } else if (args.size() >= 3) {
      run(args[0], args[1], args[2], {args.begin() + 3, args.end()});
    } else {
      std::cerr << "usage: run_case MODEL CALLS OUT [DATA.ptd...] | run_case --errors MODEL\n";
      return 2;
    }
  } catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
