// strata serve: models over HTTP, for one person or many.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>

#include "base/ascii.h"
#include "base/file.h"
#include "base/printable.h"
#include "commands.h"
#include "describe.h"
#include "descriptors.h"
#include "heap.h"
#include "hub/origin.h"
#include "model_stores.h"
#include "options.h"
#include "probe/machine.h"
#include "sampling_settings.h"
#include "say.h"
#include "serve/service.h"
#include "serve_options.h"
#include "version.h"

namespace strata::apps {
namespace {

namespace fs = std::filesystem;
using serve::ModelFile;

std::string size_name(std::uint64_t parameters) {
  const auto count = static_cast<double>(parameters);
  if (count >= 1e9) return fmt::format("{:.1f}B", count / 1e9);
  return fmt::format("{:.0f}M", count / 1e6);
}

// What clients and people like to know of a file, without loading its weights.
Result<ModelFile> file_of(const std::string& path, const std::string& name) {
  STRATA_ASSIGN(const ModelManifest manifest, ModelManifest::open(path));
  ModelFile file;
  file.name = name;
  file.path = path;
  const boost::json::object all = describe(manifest, false);
  std::map<std::string, std::uint64_t> formats;
  if (const auto* bytes = all.if_contains("file_bytes"))
    file.bytes = bytes->to_number<std::uint64_t>();
  if (const auto* parameters = all.if_contains("parameters"))
    file.parameter_size = size_name(parameters->to_number<std::uint64_t>());
  if (const auto* list = all.if_contains("formats"))
    for (const auto& each : list->as_array()) {
      const boost::json::object& format = each.as_object();
      formats[std::string(format.at("format").as_string())] =
          format.at("bytes").to_number<std::uint64_t>();
    }
  if (!formats.empty())
    file.quantization =
        std::ranges::max_element(formats, {}, [](const auto& of) { return of.second; })->first;
  if (const auto* context = all.if_contains("context_length"); context && context->is_number()) {
    boost::system::error_code error;
    file.context = context->to_number<std::int32_t>(error);
  }
  file.architecture = std::string(manifest.architecture());
  STRATA_ASSIGN(file.digest, model_digest(path));
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  if (!error)
    file.modified_at = std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::file_clock::to_sys(written).time_since_epoch())
                           .count();
  return file;
}

// Names by which clients call models: those of files, or "name=model" on the command line.
Result<std::vector<ModelFile>> configured_files(const std::vector<std::string>& models) {
  std::vector<ModelFile> files;
  for (const std::string& each : models) {
    const std::size_t equals = each.find('=');
    const bool named = equals != std::string::npos && !fs::exists(each);
    const std::string model = named ? each.substr(equals + 1) : each;
    const auto path = find_model(model);
    const std::string name =
        named || !path.ok() ? each.substr(0, equals) : fs::path(*path).stem().string();
    if (name.empty()) return invalid_argument("'{}' names no model", printable(each));
    const bool taken = std::ranges::any_of(
        files, [&](const auto& f) { return lower_case(f.name) == lower_case(name); });
    if (taken)
      return invalid_argument("two models are called {}; say NAME={} for one of them",
                              printable(name), printable(model));
    auto file = path.ok() ? file_of(*path, replace_invalid_utf8(name)) : path.status();
    if (file.ok()) {
      files.push_back(std::move(*file));
    } else {
      if (models.size() == 1) return file.status();
      say("warning: not served: {}\n", printable(file.status().message(), 500));
    }
  }
  if (files.empty()) return invalid_argument("none of the {} models can be served", models.size());
  return files;
}

// Of the caches alone: a client must not name files.
Result<ModelFile> find_in_caches(const std::string& name) {
  const StoredModels stored = list_models(user_stores());
  auto chosen = choose_model(stored.models, name, Naming::kFull);
  if (chosen.status().code() == StatusCode::kNotFound)
    chosen = choose_model(stored.models, name, Naming::kShort);
  if (chosen.status().code() == StatusCode::kNotFound)
    return not_found(
        "no model '{}' is served or in a cache here; clients name models by name, and "
        "a file only where the server was started with it",
        printable(name, 200));
  STRATA_TRY(chosen.status());
  return file_of(chosen->path, chosen->name);
}

serve::SamplingDefaults sampling_defaults(const Metadata& metadata, std::int32_t vocabulary) {
  SamplingSettings settings;
  for (const std::string& note : settings.take_from_file(metadata, vocabulary))
    say("note: {}\n", note);
  return {settings.params, settings.dry_breakers};
}

// SIGINT and SIGTERM end the server; they are taken by one thread that waits for them.
sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// What to ask a model for the first time.
std::string example_of(const ModelFile& file) {
  const auto manifest = ModelManifest::open(file.path);
  const bool chats = manifest.ok() && manifest->metadata().contains("tokenizer.chat_template");
  const std::string name = boost::json::serialize(boost::json::string(printable(file.name)));
  return chats ? fmt::format(
                     "chat/completions -d '{{\"model\": {}, \"messages\": [{{\"role\": "
                     "\"user\", \"content\": \"Hello!\"}}]}}'",
                     name)
               : fmt::format(
                     "completions -d '{{\"model\": {}, \"prompt\": \"Once upon a time\", "
                     "\"max_tokens\": 64}}'",
                     name);
}

void print_addresses(const std::string& url, const std::vector<ModelFile>& files, bool has_keys) {
  say("Serving on {}\n", url);
  for (const ModelFile& file : files)
    say("  {} ({}, {}, {})\n", printable(file.name), file.architecture, file.parameter_size,
        file.quantization);
  say("OpenAI base URL: {}/v1    Ollama host: {}    metrics: {}/metrics\n\n", url, url, url);
  say("  curl {}/v1/{}{}\n", url, example_of(files.front()),
      has_keys ? " -H \"Authorization: Bearer $KEY\"" : "");
  say("  OLLAMA_HOST={} ollama run {}\n\n", url, printable(files.front().name));
}

// Every connection takes a descriptor.
void limit_connections(http::ServerOptions& http) {
  const std::size_t descriptors = raise_descriptor_limit();
  const std::size_t wanted = http.max_connections;
  http.max_connections = connections_within(wanted, descriptors);
  if (http.max_connections < wanted)
    say("note: {} connections at a time instead of {}: the process may have {} open files "
        "(`ulimit -n`)\n",
        http.max_connections, wanted, descriptors);
}

serve::ModelsOptions models_options(const ServeOptions& options, std::vector<ModelFile> files) {
  serve::ModelsOptions models;
  models.files = std::move(files);
  models.find = find_in_caches;
  models.engine = options.engine;
  if (models.engine.memory == 0) models.engine.memory = default_memory(probe_machine());
  models.engine.running = options.parallel;
  models.engine.sequences = options.sequences;
  models.engine.logit_rows = std::max(models.engine.logit_rows, options.parallel);
  models.engine.step_rows = std::max(models.engine.step_rows, models.engine.logit_rows + 1);
  models.engine.queue = options.queue;
  models.engine.prefix_cache = !options.no_prefix_cache;
  models.keep_alive = options.keep_alive;
  models.resident = resident_without_free;
  models.sampling = sampling_defaults;
  models.log = [](const std::string& line) { say("{}\n", printable(line)); };
  return models;
}

Result<int> run(const ServeOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // whoever reads the log may go before
  STRATA_ASSIGN(const std::vector<ModelFile> files, configured_files(options.models));
  serve::ModelsOptions models = models_options(options, files);
  const Bytes memory = models.engine.memory;
  STRATA_ASSIGN(http::ServerOptions http, http_options(options, memory));
  limit_connections(http);
  STRATA_ASSIGN(const serve::LineFilter noise, read_noise(options));
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::atomic<bool> useless{false};  // the only model cannot be loaded
  std::atomic<bool> stopping{false};
  serve::Service service(std::move(models), {std::string(program_version()), metadata_json, noise});
  serve::Router router;
  router.limit_values(serve::Reserve(memory).values());
  add_openai(router, service);
  add_ollama(router, service);
  add_native(router, service);
  add_registry(router, service);
  // Before anybody can ask for the health of a server that does not load yet.
  if (!options.lazy)
    service.models().acquire(files.front().name, options.keep_alive,
                             [&, only = files.size() == 1](const auto& lease) {
                               if (lease.ok() || !only || lease.status().is_overload()) return;
                               if (stopping) return;
                               useless = true;
                               ::kill(getpid(), SIGTERM);
                             });
  http.error_body = [&router](const std::string& path, const std::string& message) {
    return router.error_body(path, message);
  };
  http.methods = [&router](const std::string& path) { return router.methods(path); };
  STRATA_ASSIGN(const std::unique_ptr<http::Server> server,
                http::Server::start(http, [&router](http::HttpRequest request,
                                                    std::shared_ptr<http::Exchange> exchange) {
                  router.handle(std::move(request), std::move(exchange));
                }));
  print_addresses(url_of(options.address, server->port()), files, !http.api_keys.empty());
  if (is_any_address(options.address) && http.api_keys.empty())
    say("warning: it listens on all addresses of this machine, and whoever reaches it needs no "
        "key; "
        "--api-keys FILE asks for one\n");
  if (is_any_address(options.address))
    say("Other machines ask by a name of this one that --allow-host names, or by its address.\n\n");
  int signal = 0;
  sigwait(&signals, &signal);
  stopping = true;
  if (useless) return 1;
  say("Stopping: new requests are refused; those under way have {} s to end. A second signal ends "
      "the program at once.\n",
      options.grace.count());
  // Whatever the program inherited.
  for (const int each : {SIGINT, SIGTERM}) ::signal(each, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  const http::StopReport ended = server->stop(options.grace);
  say("Stopped: {} of the requests under way finished, {} {} cut.\n", ended.finished, ended.cut,
      ended.cut == 1 ? "was" : "were");
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Serve models over HTTP");
  add_serve_options(*command, *options);
  set_action(*command, exit_code, [options, command]() -> Result<int> {
    STRATA_TRY(read_environment(*command));
    warn_of_unknown_variables(*command);
    if (!options->config_file.empty()) STRATA_TRY(read_config(*command, options->config_file));
    if (options->models.empty())
      return invalid_argument("name a model to serve, as an argument or in `models` of --config");
    return run(*options);
  });
}

}  // namespace strata::apps
