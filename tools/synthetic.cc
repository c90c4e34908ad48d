// strata-synthetic: writes a model with random weights, to measure speed with.
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/file.h"
#include "tools/synthetic_model.h"

namespace {

// Signals that end the program are held back while there is half a file to remove.
class Ending {
 public:
  Ending() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  // One that came takes effect here.
  ~Ending() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  bool asked() const {
    sigset_t pending;
    sigset_t ours;
    sigpending(&pending);
    sigandset(&ours, &pending, &signals_);
    return sigisemptyset(&ours) == 0;
  }

 private:
  sigset_t signals_ = {};
  sigset_t before_ = {};
};

struct SizeOption {
  const char* name;
  std::int64_t strata::SyntheticShape::*size;
  std::optional<std::int64_t> value;
};

int fail(const strata::Status& status) {
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  using strata::SyntheticShape;
  std::string preset = "1b";
  std::string architecture;
  std::string format = "q4_k_m";
  std::uint64_t seed = 1;
  std::string path;
  std::vector<SizeOption> sizes = {
      {"--dim", &SyntheticShape::dim, {}},
      {"--layers", &SyntheticShape::layers, {}},
      {"--heads", &SyntheticShape::heads, {}},
      {"--kv-heads", &SyntheticShape::kv_heads, {}},
      {"--head-size", &SyntheticShape::head_size, {}},
      {"--ff", &SyntheticShape::feed_forward, {}},
      {"--vocab", &SyntheticShape::vocabulary, {}},
      {"--experts", &SyntheticShape::experts, {}},
      {"--used", &SyntheticShape::experts_used, {}},
      {"--expert-ff", &SyntheticShape::expert_feed_forward, {}},
      {"--context", &SyntheticShape::context, {}},
  };

  CLI::App app{"Writes a model with random weights, to measure speed with"};
  app.add_option("--preset", preset, "1b, 8b or moe; other options change it")
      ->capture_default_str();
  app.add_option("--arch", architecture, "llama or qwen3moe");
  for (SizeOption& option : sizes) app.add_option(option.name, option.value);
  app.add_option("--format", format, "of the matrices: q4_0, q8_0, f16, ..., or q4_k_m")
      ->capture_default_str();
  app.add_option("--seed", seed)->capture_default_str();
  app.add_option("path", path, "the new file to write")->required();
  CLI11_PARSE(app, argc, argv);

  auto shape = strata::synthetic_preset(preset);
  if (!shape.ok()) return fail(shape.status());
  if (!architecture.empty()) shape->architecture = architecture;
  for (const SizeOption& option : sizes)
    if (option.value) (*shape).*option.size = *option.value;
  strata::Status status = strata::check_new_file(path);
  if (status.ok()) {
    const Ending ending;
    status =
        strata::write_synthetic_model(*shape, format, seed, path, [&] { return ending.asked(); });
  }
  return status.ok() ? 0 : fail(status);
}
