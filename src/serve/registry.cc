// The registry of models, by the names of Bodega's paths: load, unload, list, queue.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/printable.h"
#include "serve/body.h"
#include "serve/json_response.h"
#include "serve/openai_writer.h"
#include "serve/service.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

constexpr double kMega = 1024.0 * 1024.0;

// What a load asks for elsewhere, and the server is told when it starts.
constexpr std::string_view kServerSettings[] = {
    "model_type",     "context_length", "max_context_length", "max_concurrency",
    "max_queue_size", "queue_timeout",  "keep_alive",         "ttl"};

std::string_view status_name(ModelState state) {
  return state == ModelState::kReady ? "running" : to_string(state);
}

json::object model_json(const ModelStatus& status) {
  json::object out{{"id", status.file.name},
                   {"type", "lm"},
                   {"status", status_name(status.state)},
                   {"requests", status.requests}};
  if (!status.error.empty()) out["error"] = status.error;
  if (!status.model) return out;
  const PlacementPlan& plan = status.model->engine().plan();
  out["context_length"] = status.model->engine().context();
  out["load_seconds"] = status.model->load_seconds();
  out["expires_in_seconds"] =
      status.expires_in < KeepAlive(0)
          ? json::value(nullptr)
          : json::value(static_cast<double>(status.expires_in.count()) / 1e3);
  json::object memory;
  for (const auto& [owner, bytes] : {std::pair{"weights", plan.weights},
                                     {"cache", plan.cache},
                                     {"total", status.model->memory()}}) {
    memory[fmt::format("{}_mb", owner)] = static_cast<double>(bytes) / kMega;
    memory[fmt::format("{}_bytes", owner)] = bytes;
  }
  out["memory"] = std::move(memory);
  return out;
}

struct LoadRequest {
  std::string name;
  std::vector<std::string> warnings;
};

Answer<LoadRequest> read_load(std::string_view text) {
  STRATA_ASSIGN(const json::object body, parse_body(text));
  Fields fields(body);
  LoadRequest out;
  for (const char* const key : {"model_id", "model", "model_path"}) {
    STRATA_ASSIGN(const auto name, fields.text(key));
    if (out.name.empty())
      out.name = name.value_or("");
    else if (name && *name != out.name)
      fields.warn(key, fmt::format("has no effect: {} is loaded", printable(out.name, 200)));
  }
  if (out.name.empty()) return fields.wrong("model_id", "is missing");
  for (const std::string_view key : kServerSettings)
    if (fields.value(key) != nullptr)
      fields.warn(key, "has no effect: the server's own settings hold");
  out.warnings = fields.warnings();
  return out;
}

void load(Service& service, const Router::Call& call) {
  const auto read = read_load(call.request.body);
  if (!read.ok()) return call.exchange->respond(openai_error(read.status()));
  const auto done = [&service, exchange = call.exchange,
                     warnings = read->warnings](const Answer<std::shared_ptr<ModelLease>>& leased) {
    if (!leased.ok()) return exchange->respond(openai_error(leased.status()));
    const auto status = service.models().find((*leased)->model().file().name);
    json::object out = status ? model_json(*status) : json::object();
    if (!warnings.empty()) out["warnings"] = json::value_from(warnings);
    exchange->respond(json_response(out));
  };
  service.load(read->name, call.exchange, done);
}

void unload(Service& service, const Router::Call& call) {
  const Status status = service.models().unload(call.rest);
  if (!status.ok()) return call.exchange->respond(openai_error(Refusal(status)));
  const auto model = service.models().find(call.rest);
  std::int32_t requests = model ? model->requests : 0;  // that it goes behind
  // Those that wait for one that is loading have it before it goes; for others it comes back.
  if (model && model->state != ModelState::kLoading) requests -= model->waiting;
  call.exchange->respond(
      json_response({{"id", call.rest}, {"status", "unloading"}, {"requests", requests}}));
}

void loaded(Service& service, const Router::Call& call) {
  json::array list;
  for (const ModelStatus& status : service.models().list())
    if (status.state != ModelState::kUnloaded || !status.error.empty())
      list.push_back(model_json(status));
  const std::size_t total = list.size();
  call.exchange->respond(
      json_response({{"object", "list"}, {"data", std::move(list)}, {"total", total}}));
}

void queue_stats(Service& service, const Router::Call& call) {
  std::int64_t running = 0, waiting = 0;
  for (const ModelStatus& status : service.models().list()) {
    waiting += status.waiting;
    if (!status.model) continue;
    const EngineStats stats = status.model->engine().stats();
    running += stats.running;
    waiting += stats.waiting;
  }
  const Metrics::Counts counts = service.metrics().counts();
  call.exchange->respond(
      json_response({{"running", running},
                     {"waiting", waiting},
                     {"requests", counts.arrived},
                     {"completed", counts.done},
                     {"failed", counts.failed},
                     {"refused", counts.refused},
                     {"disconnected", counts.disconnected},
                     {"queue_seconds_p50", service.metrics().queued_quantile(0.5)},
                     {"queue_seconds_p95", service.metrics().queued_quantile(0.95)}}));
}

}  // namespace

void add_registry(Router& router, Service& service) {
  router.add("POST", "/v1/admin/load-model",
             [&service](const Router::Call& call) { load(service, call); });
  for (const char* const method : {"DELETE", "POST"})
    router.add(method, "/v1/admin/unload-model/*",
               [&service](const Router::Call& call) { unload(service, call); });
  router.add("GET", "/v1/admin/loaded-models",
             [&service](const Router::Call& call) { loaded(service, call); });
  router.add("GET", "/v1/queue/stats",
             [&service](const Router::Call& call) { queue_stats(service, call); });
}

}  // namespace strata::serve
