// What the corpus does not say of this binding. Usage: test TESTS, the folder tests/ of the sources.
#include <etude/backend.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#if defined(__cpp_lib_span)
#include <span>
#endif

namespace {

int failed = 0;

#define CHECK(truth) check(truth, #truth, __LINE__)
void check(bool truth, const char *what, int line) {
  if (!truth) {
    std::printf("line %d: %s\n", line, what);
    failed++;
  }
}

/** The status of what an action throws; 0 if it throws nothing. */
template <class Action> etude_status status_of(Action action, const std::string &part = {}) {
  try {
    action();
    return ETUDE_OK;
  } catch (const etude::Error &error) {
    if (std::string(error.what()).find(part) == std::string::npos) {
      std::printf("'%s' does not say '%s'\n", error.what(), part.c_str());
      failed++;
    }
    return error.status();
  }
}

const std::vector<float> x = {1, -2, 3, 4, 0.5f, 6};

/** Multiplies a float tensor by `percent` / 100. */
class Scale : public etude::Backend {
 public:
  explicit Scale(std::atomic<int> &alive) : alive_(alive) {}
  std::vector<etude::OptionSpec> options() const override {
    return {{"percent", "factor, in percent", int64_t{100}, -1000, 1000, true}, {"mood", "how it goes", std::string("fine")}};
  }
  std::unique_ptr<etude::Delegate> init(etude::InitContext &ctx, etude::Span<const uint8_t> payload) override {
    if (ctx.option<std::string>("mood") == "bad") {
      throw etude::Error(ETUDE_DELEGATE_INCOMPATIBLE, "not in the mood");
    }
    CHECK(ctx.method_name() == "scale" && !payload.empty());
    return std::make_unique<Part>(alive_);
  }

 private:
  struct Part : etude::Delegate {
    explicit Part(std::atomic<int> &alive) : alive_(alive) { alive_++; }
    ~Part() override { alive_--; }
    void execute(etude::ExecuteContext &ctx) override {
      const auto percent = static_cast<float>(ctx.option<int64_t>("percent"));
      const etude::TensorView from = ctx.argument(0).tensor();
      if (percent == 13.0f) {
        throw std::runtime_error("an unlucky number");
      }
      ctx.resize(1, from.sizes());
      const etude::Span<float> to = ctx.output<float>(1);
      ctx.work(to.size());
      ctx.parallel_for(to.size(), [&](size_t i, size_t worker) {
        if (worker >= ctx.worker_count() || percent == 17.0f) {
          throw std::runtime_error("another unlucky number");
        }
        to[i] = from.data<float>()[i] * percent / 100.0f;
      });
    }
    std::atomic<int> &alive_;
  };
  std::atomic<int> &alive_;
};

void test_backend(const std::string &tests) {
  std::atomic<int> alive{0};
  {
    etude::Runtime runtime(2);
    etude::register_backend(runtime, "ScaleBackend", std::make_unique<Scale>(alive));
    CHECK(status_of([&] { etude::register_backend(runtime, "ScaleBackend", std::make_unique<Scale>(alive)); }) == ETUDE_ALREADY_REGISTERED);
    CHECK(runtime.option_schema("ScaleBackend").size() == 2);
    const etude::Program program(runtime, tests + "/data/backends.pte");
    CHECK(program.method("scale").delegates == std::vector<std::string>{"ScaleBackend"});
    CHECK(status_of([&] { program.load("scale", {{"ScaleBackend", {{"mood", std::string("bad")}}}}); }, "not in the mood") == ETUDE_DELEGATE_INCOMPATIBLE);
    CHECK(alive == 0);
    etude::Method scale = program.load("scale");
    runtime.set_option("ScaleBackend", "percent", int64_t{250});
    CHECK(scale({etude::Tensor::borrow(x, {2, 3})})[0].tensor().data<float>()[1] == -5.0f);
    runtime.set_option("ScaleBackend", "percent", int64_t{13});
    CHECK(status_of([&] { scale.execute(); }, "an unlucky number") == ETUDE_INTERNAL);
    runtime.set_option("ScaleBackend", "percent", int64_t{17});
    CHECK(status_of([&] { scale.execute(); }, "another unlucky number") == ETUDE_INTERNAL);
    runtime.reset_options("ScaleBackend");
    CHECK(std::get<int64_t>(runtime.option("ScaleBackend", "percent")) == 100);
    etude::Method other = program.load("scale", {{"ScaleBackend", {{"percent", int64_t{-100}}}}});
    const etude::OptionExplanation why = other.explain_option("ScaleBackend", "percent");
    CHECK(std::get<int64_t>(why.value) == -100 && why.origin == ETUDE_ORIGIN_METHOD && !why.layers[ETUDE_ORIGIN_PROCESS] &&
          std::get<int64_t>(*why.layers[ETUDE_ORIGIN_DEFAULT]) == 100);
    CHECK(alive == 2);
    scale = std::move(other);  // the old one ends
    CHECK(alive == 1 && scale({etude::Tensor::borrow(x, {2, 3})})[0].tensor().data<float>()[0] == -1.0f);
  }
  CHECK(alive == 0);
}

void test_metadata(const std::string &tests) {
  const etude::Runtime runtime;
  const etude::Program program(runtime, tests + "/corpus/add.pte");
  const etude::MethodInfo info = program.method("forward");
  CHECK(info.inputs.size() == 2 && info.outputs.size() == 1 && info.instruction_count == 1);
  CHECK(info.inputs[1].kind == ETUDE_VALUE_TENSOR && info.inputs[1].scalar_type == ETUDE_FLOAT && info.inputs[1].nbytes == 24);
  CHECK((info.inputs[1].sizes == std::vector<int32_t>{2, 3}) && !info.inputs[1].dynamic);
  CHECK(info.operators == std::vector<std::string>{"aten::add.out"} && info.missing_operators.empty() && info.delegates.empty());
  CHECK(program.memory("forward").planned == info.buffers.at(0));
  CHECK(status_of([&] { program.method("backward"); }, "forward") == ETUDE_NOT_FOUND);
}

void test_inputs(const std::string &tests) {
  const etude::Runtime runtime;
  const etude::Program program(runtime, tests + "/corpus/add.pte");
  etude::Method add = program.load();
  const std::array<float, 6> y = {1, 1, 1, 1, 1, 1};
  const etude::TensorView z = add({etude::Tensor::borrow(x, {2, 3}), etude::Tensor::borrow(y, {2, 3})})[0].tensor();
  CHECK(z.data<float>()[5] == 7.0f && z.rank() == 2 && z.is_contiguous());
  CHECK(status_of([&] { z.data<int64_t>(); }, "the tensor holds float, not long") == ETUDE_INVALID_TYPE);
  CHECK(status_of([] { etude::Tensor::borrow(x, {2, 2}); }, "6 elements do not fill a tensor of sizes [2, 2]") == ETUDE_INVALID_ARGUMENT);
  for (const auto &order : std::vector<std::vector<uint8_t>>{{0, 0}, {5, 9}, {0}}) {
    CHECK(status_of([&] { etude::Tensor::borrow(x.data(), {2, 3}, order); }, "the dim order is invalid") == ETUDE_INVALID_ARGUMENT);
  }
  CHECK(status_of([] { etude::Tensor::borrow(x.data(), {-2, -3}); }, "[-2, -3]") == ETUDE_INVALID_ARGUMENT);
  CHECK(status_of([&] { add({1, 2}); }) == ETUDE_INVALID_TYPE);
#if defined(__cpp_lib_span)
  const std::span<const float> all = z.data<float>();
  CHECK(all.size() == 6);
#endif
  // elements of its own, from a temporary; an older input's end with the next
  add.set_inputs({etude::Tensor::from(std::vector<float>(6, 2.0f), {2, 3}), etude::Tensor::from(x, {2, 3})});
  add.execute();
  CHECK(add.output(0).tensor().to_vector<float>()[0] == 3.0f);
  CHECK(status_of([&] { add.output(0).as_int(); }, "the output is of kind Tensor, not Int") == ETUDE_INVALID_TYPE);
  const std::vector<etude::ProfileRow> rows = add.profile({etude::Tensor::borrow(x, {2, 3}), etude::Tensor::borrow(x, {2, 3})});
  CHECK(rows.size() == 1 && rows[0].name == "aten::add.out" && rows[0].bytes == 72);
  CHECK(status_of([&] { program.load("forward", {}, etude::Limits{0, 100, 0, 0}); }, "memory_limit") != ETUDE_OK);
}

void test_ending(const std::string &tests) {
  const etude::Runtime runtime;
  std::ifstream file(tests + "/corpus/add.pte", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  etude::Method add = etude::Program::borrow(runtime, bytes.data(), bytes.size()).load();
  const std::vector<etude::Value> inputs = {etude::Tensor::borrow(x, {2, 3}), etude::Tensor::borrow(x, {2, 3})};
  std::thread([&] { add.cancel(); }).join();
  CHECK(status_of([&] { add(inputs); }) == ETUDE_CANCELLED);
  CHECK(status_of([&] { add(inputs); }) == ETUDE_OK);
  int asked = 0;
  add.set_interrupt([&asked] { return ++asked > 0; });
  etude::Method &same = add;
  add = std::move(same);
  CHECK(status_of([&] { add(inputs); }) == (asked > 0 ? ETUDE_CANCELLED : ETUDE_OK));
  add.set_interrupt({});
  CHECK(status_of([&] { add(inputs); }) == ETUDE_OK);
}

void test_moved(const std::string &tests) {
  etude::Runtime runtime;
  etude::Program program(runtime, tests + "/corpus/add.pte");
  etude::Method add = program.load();
  const etude::Method taken = std::move(add);
  CHECK(status_of([&] { add.execute(); }, "the method was moved") == ETUDE_INVALID_STATE);
  CHECK(status_of([&] { add({etude::Tensor::borrow(x, {2, 3})}); }) == ETUDE_INVALID_STATE);
  CHECK(status_of([&] { add.memory(); }) == ETUDE_INVALID_STATE);
  CHECK(status_of([&] { add.cancel(); }) == ETUDE_INVALID_STATE);
  CHECK(status_of([&] { add.set_interrupt({}); }) == ETUDE_INVALID_STATE);
  const etude::Program other = std::move(program);
  CHECK(status_of([&] { program.load(); }, "the program was moved") == ETUDE_INVALID_STATE);
  const etude::Runtime last = std::move(runtime);
  CHECK(status_of([&] { runtime.backends(); }, "the runtime was moved") == ETUDE_INVALID_STATE);
  CHECK(status_of([&] { etude::Program(runtime, tests + "/corpus/add.pte"); }) == ETUDE_INVALID_STATE);
}

void test_state(const std::string &tests) {
  const etude::Runtime runtime;
  const etude::Program program(runtime, tests + "/corpus/shared_state.pte");
  etude::Method put = program.load("put"), get = program.load("get");
  const std::vector<std::string> names = put.state_names();
  CHECK(!names.empty());
  const std::vector<int64_t> at = {2};
  const std::vector<float> row = {1, 2, 3};
  const std::vector<uint8_t> before = get.read_state(names[0]);
  put({etude::Tensor::borrow(row, {1, 3}), etude::Tensor::borrow(at, {1})});
  const std::vector<uint8_t> after = get.read_state(names[0]);
  CHECK(before != after);
  get.write_state(names[0], before.data(), before.size());
  CHECK(put.read_state(names[0]) == before);
  put.write_state(names[0], after.data(), after.size());
  put.reset_state(names[0]);
  CHECK(get.read_state(names[0]) == before);
  CHECK(status_of([&] { get.read_state("none"); }, names[0]) == ETUDE_NOT_FOUND);
  CHECK(status_of([&] { get.write_state(names[0], before.data(), 1); }) == ETUDE_INVALID_ARGUMENT);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    return 2;
  }
  for (const auto test : {test_backend, test_metadata, test_inputs, test_ending, test_moved, test_state}) {
    test(argv[1]);
  }
  std::printf(failed == 0 ? "6 passed\n" : "%d failed\n", failed);
  return failed == 0 ? 0 : 1;
}
