// strata ps and strata stop: what a running server holds, and letting go of it.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/printable.h"
#include "commands.h"
#include "hub/http.h"
#include "options.h"
#include "say.h"
#include "serve_options.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr Bytes kMostAnswerBytes = 16 * kMiB;

struct ServerAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  std::string key_file;
};

void add_address_options(CLI::App& command, ServerAddress& address) {
  command.add_option("--host", address.host, "Address of the server")
      ->capture_default_str()
      ->check(refuse_empty);
  command.add_option("--port", address.port, "Its port")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  command.add_option("--api-keys", address.key_file, "File of keys, the first of which is sent")
      ->check(refuse_empty);
}

// What the environment says to `strata serve` holds for its clients too.
Status read_address(CLI::App& command) {
  return read_environment(command, {"host", "port", "api-keys"});
}

std::string url_of(const ServerAddress& address) {
  return apps::url_of(address.host, address.port);
}

std::string message_of(const json::value& answer, long status) {
  const json::object* object = answer.if_object();
  const json::value* error = object == nullptr ? nullptr : object->if_contains("error");
  const json::object* details = error == nullptr ? nullptr : error->if_object();
  const json::value* message = details == nullptr ? nullptr : details->if_contains("message");
  if (message == nullptr || !message->is_string()) return fmt::format("it answered {}", status);
  return printable(message->get_string(), 500);
}

Result<json::object> ask(const ServerAddress& address, const std::string& path,
                         std::optional<std::string> post) {
  HttpRequest request;
  request.url = url_of(address) + path;
  request.post = std::move(post);
  request.direct = true;
  if (!address.key_file.empty()) {
    STRATA_ASSIGN(const std::vector<std::string> keys, read_keys(address.key_file));
    request.headers.push_back("Authorization: Bearer " + keys.front());
  }
  STRATA_ASSIGN(Http http, Http::create({}));
  std::string body;
  const auto take = [&](const HttpAnswer&, std::span<const std::uint8_t> bytes) -> Status {
    body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (body.size() > kMostAnswerBytes) return resource_exhausted("the answer is too long");
    return {};
  };
  const auto answer = http.get(request, take);
  if (answer.status().code() == StatusCode::kNotFound)
    return not_found("no server is at {}; is `strata serve` running, on that --port?",
                     url_of(address));
  STRATA_TRY(answer.status());
  boost::system::error_code error;
  json::value value = json::parse(body, error);
  if (error) value = nullptr;
  if (answer->status != 200)
    return unsupported("{}: {}", url_of(address), message_of(value, answer->status));
  if (!value.is_object()) return corrupt("{} is no server of Strata's", url_of(address));
  return std::move(value.as_object());
}

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? printable(value->get_string(), 100) : "";
}

double number_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

// Only a model that is there goes.
std::string goes_in(const json::object& model) {
  if (text_at(model, "status") == "unloading") return "when idle";
  const json::value* seconds = model.if_contains("expires_in_seconds");
  if (seconds == nullptr) return "-";
  if (!seconds->is_number()) return "never";
  return fmt::format("{:.0f} s", number_at(model, "expires_in_seconds"));
}

Result<int> list(const ServerAddress& address, bool as_json) {
  STRATA_ASSIGN(const json::object answer, ask(address, "/v1/admin/loaded-models", std::nullopt));
  if (as_json) return print(json::serialize(answer) + "\n").ok() ? 0 : 1;
  const json::value* data = answer.if_contains("data");
  const json::array* models = data == nullptr ? nullptr : data->if_array();
  if (models == nullptr || models->empty()) {
    STRATA_TRY(print("The server holds no model.\n"));
    return 0;
  }
  std::string out = fmt::format("{:<32}  {:<9}  {:>10}  {:>8}  {}\n", "MODEL", "STATUS", "MEMORY",
                                "REQUESTS", "GOES IN");
  for (const json::value& each : *models) {
    const json::object* model = each.if_object();
    if (model == nullptr) continue;
    const json::value* memory = model->if_contains("memory");
    const double mebibytes =
        memory != nullptr && memory->is_object() ? number_at(memory->get_object(), "total_mb") : 0;
    out += fmt::format("{:<32}  {:<9}  {:>6.0f} MiB  {:>8}  {}\n", text_at(*model, "id"),
                       text_at(*model, "status"), mebibytes, number_at(*model, "requests"),
                       goes_in(*model));
    if (const std::string error = text_at(*model, "error"); !error.empty())
      out += fmt::format("  {}\n", error);
  }
  STRATA_TRY(print(out));
  return 0;
}

Result<int> stop(const ServerAddress& address, const std::string& model) {
  STRATA_ASSIGN(const json::object answer,
                ask(address, "/v1/admin/unload-model/" + escaped_path(model), std::string()));
  const double requests = number_at(answer, "requests");
  if (requests == 0)
    say("{} goes now.\n", printable(model));
  else
    say("{} goes when its last request has ended; there {} {}.\n", printable(model),
        requests == 1 ? "is" : "are", requests);
  return 0;
}

}  // namespace

void add_ps(CLI::App& app, int& exit_code) {
  struct Options {
    ServerAddress address;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("ps", "List the models that a running server holds");
  add_address_options(*command, options->address);
  command->add_flag("--json", options->json, "Print what the server says");
  set_action(*command, exit_code, [options, command]() -> Result<int> {
    STRATA_TRY(read_address(*command));
    return list(options->address, options->json);
  });
}

void add_stop(CLI::App& app, int& exit_code) {
  struct Options {
    ServerAddress address;
    std::string model;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("stop", "Make a running server let go of a model");
  command->add_option("model", options->model, "Its name, as strata ps shows it")
      ->required()
      ->check(refuse_empty);
  add_address_options(*command, options->address);
  set_action(*command, exit_code, [options, command]() -> Result<int> {
    STRATA_TRY(read_address(*command));
    return stop(options->address, options->model);
  });
}

}  // namespace strata::apps
