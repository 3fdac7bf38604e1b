// A language model: token ids in, token ids out, each as soon as it is chosen. For programs of the llama exporter with caches.
//
//   generate -n MOST MODEL.pte     each line of the input is a turn, which goes on where the last one ended
//
// c++ -std=c++17 generate.cpp $(pkg-config --cflags --libs etude) -o generate; echo 43 72 270 | ./generate -n 8 model.pte
#include <etude/etude.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <sstream>

namespace {

class Decoder {
 public:
  explicit Decoder(const std::string &path)
      : program_(etude::Runtime(), path), bound_(program_.method("forward").inputs.at(0).sizes.back()),
        window_(constants("get_max_context_len").at(0)), ends_(constants("get_eos_ids")), forward_(program_.load()) {}

  /** Read a prompt, then tell @p on_token of up to @p most tokens, until one ends the text or @p on_token says false. */
  void generate(const std::vector<int64_t> &prompt, int most, const std::function<bool(int64_t)> &on_token) {
    if (prompt.empty() || static_cast<int64_t>(prompt.size()) > window_ - position_) {
      throw std::runtime_error("the prompt is empty, or longer than what is left of the window");
    }
    int64_t token = feed(prompt);
    for (int i = 1; on_token(token) && i < most && position_ < window_; i++) {
      if (std::count(ends_.begin(), ends_.end(), token) > 0) {
        break;
      }
      token = feed({token});
    }
  }

 private:
  /** What a method without inputs returns. */
  std::vector<int64_t> constants(const std::string &method) const {
    std::vector<int64_t> all;
    for (const etude::ValueInfo &output : program_.method(method).outputs) {
      all.push_back(std::get<int64_t>(output.value));
    }
    return all;
  }
  /** Read tokens, as many a call as the program takes; the likeliest to follow. */
  int64_t feed(const std::vector<int64_t> &tokens) {
    int64_t best = 0;
    for (size_t at = 0; at < tokens.size();) {
      const auto count = static_cast<int32_t>(std::min(tokens.size() - at, static_cast<size_t>(bound_)));
      const std::vector<etude::Output> outputs =
          forward_({etude::Tensor::borrow(tokens.data() + at, {1, count}), etude::Tensor::borrow(&position_, {1})});
      const etude::TensorView logits = outputs[0].tensor();
      const auto last = logits.data<float>().end() - logits.sizes()[logits.rank() - 1];
      best = std::max_element(last, logits.data<float>().end()) - last;
      at += static_cast<size_t>(count);
      position_ += count;
    }
    return best;
  }

  etude::Program program_;
  int32_t bound_;   // most tokens of one call
  int64_t window_;  // positions that the caches hold
  std::vector<int64_t> ends_;
  int64_t position_ = 0;
  etude::Method forward_;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc != 4 || std::string(argv[1]) != "-n") {
    std::cerr << "usage: generate -n MOST MODEL.pte\n";
    return 2;
  }
  try {
    Decoder decoder(argv[3]);
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      const std::vector<int64_t> prompt{std::istream_iterator<int64_t>(words), {}};
      decoder.generate(prompt, std::stoi(argv[2]), [](int64_t token) { return bool(std::cout << token << ' ' << std::flush); });
      std::cout << '\n';
    }
  } catch (const std::exception &error) {
    std::cerr << "generate: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
