// What `strata serve` can be told: by options, a file, or the environment.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "serve/http/server.h"
#include "serve/line_filter.h"

namespace strata::apps {

struct ServeOptions {
  std::vector<std::string> models;
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;
  std::int32_t parallel = 64;  // sequences computed at a time
  std::int32_t sequences = 4;  // of full context that the cache has room for
  std::size_t queue = 1024;
  std::chrono::milliseconds keep_alive{std::chrono::minutes(5)};
  std::chrono::seconds grace{30};
  bool lazy = false;  // no model is loaded before a request
  bool no_prefix_cache = false;
  std::string key_file;
  std::string noise_file;
  std::string config_file;
  std::vector<std::string> hosts, origins;
  std::size_t connections = 1024;
  EngineOptions engine;
};

// Every option may also stand in the file of --config (TOML), the models as `models`, and in the
// environment as STRATA_SERVE_ and its name.
void add_serve_options(CLI::App& command, ServeOptions& options);

// Takes from the environment what the command line does not say. `names`: of these options alone,
// where there are any.
Status read_environment(CLI::App& command, std::initializer_list<std::string_view> names = {});

// Says which STRATA_ variables look meant for the server and are no option of it.
void warn_of_unknown_variables(const CLI::App& command);

// Takes from the file of --config what neither the command line nor the environment says.
Status read_config(CLI::App& command, const std::string& path);

// Whether it stands for every address of the machine.
bool is_any_address(std::string_view address);
// Where a server that listens there can be reached from this machine.
std::string url_of(const std::string& address, int port);

// How many of the wanted connections a process with so many descriptors can have besides its files.
std::size_t connections_within(std::size_t wanted, std::size_t descriptors);

// Reads the file of keys. `budget`: of memory, of which what clients send may take a share.
Result<http::ServerOptions> http_options(const ServeOptions& options, Bytes budget);

// The rules of --neutralize; none where there is no file.
Result<serve::LineFilter> read_noise(const ServeOptions& options);

// The keys of a file: one per line; blank lines and those that begin with # are none.
Result<std::vector<std::string>> read_keys(const std::string& path);

}  // namespace strata::apps
