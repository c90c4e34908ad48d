#include "serve_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "base/ascii.h"
#include "base/file.h"
#include "base/printable.h"
#include "options.h"
#include "say.h"
#include "serve/ollama_request.h"
#include "serve/reserve.h"
#include "serve_config.h"

namespace strata::apps {
namespace {

constexpr Bytes kMostFileBytes = kMiB;
constexpr std::string_view kEnvironmentPrefix = "STRATA_SERVE_";
constexpr const char* kModels = "models";  // what a file calls the arguments

std::string environment_name(std::string_view option) {
  std::string name(kEnvironmentPrefix);
  for (const char c : option)
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// A file that people write, line by line.
Result<std::string> read_lines_file(const std::string& path) {
  STRATA_ASSIGN(const File file, File::open(path));
  if (file.size() > kMostFileBytes)
    return invalid_argument("{} is too large: {} MiB at most", printable(path),
                            kMostFileBytes / kMiB);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  STRATA_TRY(file.read_exactly(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
  return text;
}

// What `option` takes, told to somebody whose value it does not.
std::string expectation(const CLI::Option& option, std::string_view trouble) {
  constexpr std::string_view kRange = "not in range ";
  const std::string type = option.get_type_name();
  const bool whole = type.starts_with("UINT") || type.starts_with("INT");
  if (whole || type.starts_with("FLOAT")) {
    const std::size_t range = trouble.find(kRange);
    return fmt::format("it must be a {}number{}", whole ? "whole " : "",
                       range == std::string_view::npos
                           ? std::string()
                           : fmt::format(" from {}", trouble.substr(range + kRange.size())));
  }
  const std::string name = "--" + option.get_lnames().front() + ": ";
  return std::string(trouble.substr(trouble.starts_with(name) ? name.size() : 0));
}

// Gives an option what stands in the file or the variable that `place` names.
Status give(CLI::Option& option, const std::string& place, const std::vector<std::string>& values) {
  const auto wrong = [&](std::string_view what) {
    return invalid_argument("{}: '{}' cannot be the value of {}: {}", place,
                            printable(fmt::format("{}", fmt::join(values, ", ")), 100),
                            option.get_lnames().empty() ? kModels : option.get_lnames().front(),
                            what);
  };
  if (values.empty() && option.get_expected_max() > 1) return {};
  const std::string& first = values.empty() ? std::string() : values.front();
  const bool is_true = first == "true", is_false = first == "false";
  if (option.get_expected_min() == 0) {
    if (values.size() != 1 || !(is_true || is_false || first == "1" || first == "0"))
      return wrong("it must be true or false");
    if (is_false || first == "0") return {};
  } else if ((is_true || is_false) && option.get_type_name().find("TEXT") == std::string::npos) {
    return wrong("it must be a number");
  } else if (values.size() != 1 && option.get_expected_max() == 1) {
    return wrong("it must be one value");
  }
  try {
    option.add_result(values);
    option.run_callback();
  } catch (const CLI::Error& error) {
    return wrong(expectation(option, error.what()));
  }
  return {};
}

void add_network_options(CLI::App& command, ServeOptions& options) {
  command.add_option("--host", options.address, "Address to listen on")
      ->capture_default_str()
      ->check(refuse_empty);
  command.add_option("--port", options.port, "Port; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      .add_option("--api-keys", options.key_file,
                  "File of keys, one per line, of which clients must send one")
      ->check(refuse_empty);
  command
      .add_option("--allow-host", options.hosts,
                  "Name by which clients may call this machine, besides loopback ones; *: any")
      ->delimiter(',');
  command
      .add_option("--allow-origin", options.origins,
                  "Origin whose pages may ask, besides loopback ones; *: any")
      ->delimiter(',');
  command.add_option("--connections", options.connections, "Connections at a time")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option_function<int>(
          "--grace",
          [&options](const int& seconds) { options.grace = std::chrono::seconds(seconds); },
          "Seconds that requests have to end when the server stops")
      ->check(CLI::Range(0, 86400))
      ->default_str("30");
}

void add_model_options(CLI::App& command, ServeOptions& options) {
  command.add_option("--parallel", options.parallel, "Sequences computed at a time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      .add_option("--sequences", options.sequences,
                  "Sequences of full context that the cache should have room for")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--queue", options.queue, "Requests of a model that may wait; more get 503")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--keep-alive",
          [&options](const std::string& text) {
            const auto parsed = serve::parse_duration(text);
            if (!parsed) throw CLI::ValidationError("--keep-alive", "write for example 5m or -1");
            options.keep_alive = *parsed;
          },
          "How long a model stays loaded without requests; -1: for ever")
      ->default_str("5m");
  command.add_flag("--lazy", options.lazy, "Load no model before the first request for it");
  command
      .add_option(
          "--neutralize", options.noise_file,
          "File of how lines of system prompts begin that are left out, because they change "
          "with every call and would keep prompts from being cached; *: any text")
      ->check(refuse_empty);
  command.add_flag("--no-prefix-cache", options.no_prefix_cache,
                   "Keep nothing of prompts that begin alike");
}

}  // namespace

void add_serve_options(CLI::App& command, ServeOptions& options) {
  command.add_option(
      "model", options.models,
      "GGUF files or names of cached models, also as NAME=MODEL; the first is loaded "
      "at once, others when asked for");
  add_network_options(command, options);
  add_model_options(command, options);
  add_engine_options(command, options.engine);
  command.add_option("--config", options.config_file, "TOML file of these options")
      ->check(refuse_empty);
  command.footer(
      fmt::format("Every option may also stand in the environment, as {} with its name ({}).",
                  kEnvironmentPrefix, environment_name("port") + "=9000"));
}

Result<std::vector<std::string>> read_keys(const std::string& path) {
  STRATA_ASSIGN(const std::string text, read_lines_file(path));
  std::vector<std::string> keys;
  for (const std::string_view line : split(text, '\n'))
    if (const auto key = trimmed(line); !key.empty() && !key.starts_with('#'))
      keys.emplace_back(key);
  if (keys.empty()) return invalid_argument("{} holds no key", printable(path));
  return keys;
}

Status read_environment(CLI::App& command, std::initializer_list<std::string_view> names) {
  for (CLI::Option* const option : command.get_options()) {
    if (option->get_lnames().empty() || option->count() > 0 || option == command.get_help_ptr())
      continue;
    const std::string& name = option->get_lnames().front();
    if (names.size() > 0 && std::ranges::find(names, name) == names.end()) continue;
    const std::string variable = environment_name(name);
    const char* const value = std::getenv(variable.c_str());
    if (value != nullptr && *value != '\0') STRATA_TRY(give(*option, variable, {value}));
  }
  return {};
}

void warn_of_unknown_variables(const CLI::App& command) {
  constexpr std::string_view kPrefix = "STRATA_";
  std::set<std::string> known;
  for (const CLI::Option* const option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.insert(environment_name(name));
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const std::string name(variable.substr(0, variable.find('=')));
    if (known.contains(name) || !name.starts_with(kPrefix)) continue;
    const std::string meant = std::string(kEnvironmentPrefix) + name.substr(kPrefix.size());
    if (known.contains(meant))
      say("warning: {} has no effect; {} has\n", printable(name), meant);
    else if (name.starts_with(kEnvironmentPrefix))
      say("warning: {} has no effect: strata serve has no such option\n", printable(name, 100));
  }
}

bool is_any_address(std::string_view address) { return address == "0.0.0.0" || address == "::"; }

std::string url_of(const std::string& address, int port) {
  const std::string host = is_any_address(address) ? "127.0.0.1" : address;
  const bool six = host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", six ? "[" : "", host, six ? "]" : "", port);
}

Status read_config(CLI::App& command, const std::string& path) {
  STRATA_ASSIGN(const std::string text, read_lines_file(path));
  STRATA_ASSIGN(const std::vector<Setting> settings, parse_settings(path, text));
  std::set<std::string> names;
  for (const Setting& setting : settings) {
    const std::string place = fmt::format("{}, line {}", printable(path), setting.line);
    const bool models = setting.name == kModels;
    CLI::Option* const option = command.get_option_no_throw(models ? "model" : "--" + setting.name);
    if (option == nullptr || (option->get_lnames().empty() && !models))
      return invalid_argument("{}: strata serve has no option '{}'", place,
                              printable(setting.name, 100));
    if (option == command.get_help_ptr() || setting.name == "config")
      return invalid_argument("{}: {} cannot stand in the file", place, setting.name);
    if (!names.insert(setting.name).second)
      return invalid_argument("{}: the option {} is there twice", place, setting.name);
    if (option->count() == 0) STRATA_TRY(give(*option, place, setting.values));
  }
  return {};
}

Result<serve::LineFilter> read_noise(const ServeOptions& options) {
  if (options.noise_file.empty()) return serve::LineFilter();
  STRATA_ASSIGN(const std::string text, read_lines_file(options.noise_file));
  serve::LineFilter filter(text);
  if (filter.empty()) return invalid_argument("{} holds no rule", printable(options.noise_file));
  return filter;
}

std::size_t connections_within(std::size_t wanted, std::size_t descriptors) {
  constexpr std::size_t kOthers = 64;  // files, pipes, sockets that listen
  constexpr std::size_t kTaken = kOthers + http::kMostRefusing + 1;
  // Of few descriptors a half.
  const std::size_t left = descriptors > 2 * kTaken ? descriptors - kTaken : descriptors / 2;
  return std::clamp<std::size_t>(left, 1, wanted);
}

Result<http::ServerOptions> http_options(const ServeOptions& options, Bytes budget) {
  http::ServerOptions http;
  http.address = options.address;
  http.port = options.port;
  http.max_connections = options.connections;
  http.max_queued = std::max(http.max_queued, options.queue);
  const serve::Reserve reserve(budget);
  http.max_buffered_bytes = reserve.bodies();
  http.max_body_bytes = reserve.body();
  http.allowed_hosts = options.hosts;
  http.allowed_origins = options.origins;
  if (!options.key_file.empty()) {
    STRATA_ASSIGN(http.api_keys, read_keys(options.key_file));
  }
  return http;
}

}  // namespace strata::apps
