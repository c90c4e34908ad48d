// Strata's own paths: health, metrics, slots, and the text side of models.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "base/printable.h"
#include "base/units.h"
#include "serve/body.h"
#include "serve/chat_fields.h"
#include "serve/json_response.h"
#include "serve/openai_writer.h"
#include "serve/service.h"
#include "serve/tool_schemas.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

void health(Service& service, const Router::Call& call) {
  const bool starting = service.models().starting();
  call.exchange->respond(json_response(json::object{{"status", starting ? "loading model" : "ok"}},
                                       starting ? 503 : 200));
}

// One metric of every model that is ready or that requests wait for.
class ModelMetrics {
 public:
  explicit ModelMetrics(const std::vector<ModelStatus>& models) {
    for (const ModelStatus& status : models) {
      if (!status.model && status.waiting == 0) continue;
      EngineStats stats = status.model ? status.model->engine().stats() : EngineStats();
      stats.waiting += status.waiting;
      all_.push_back({model_label(status.file.name), std::move(stats)});
    }
  }

  template <typename Value>
  void add(std::string_view name, std::string_view kind, std::string_view help, Value value) {
    if (all_.empty()) return;
    text_ += metric_head(name, kind, help);
    for (const auto& [label, stats] : all_)
      text_ += fmt::format("{}{{{}}} {}\n", name, label, value(stats));
  }
  const std::string& text() const { return text_; }

 private:
  std::vector<std::pair<std::string, EngineStats>> all_;
  std::string text_;
};

double share_of(const std::vector<std::int32_t>& part, const std::vector<std::int32_t>& whole) {
  double most = 0;
  for (std::size_t i = 0; i < part.size() && i < whole.size(); ++i)
    if (whole[i] > 0) most = std::max(most, static_cast<double>(part[i]) / whole[i]);
  return most;
}

std::string engine_metrics(const std::vector<ModelStatus>& models) {
  ModelMetrics all(models);
  using Stats = const EngineStats&;
  all.add("vllm:num_requests_running", "gauge", "Sequences being computed.",
          [](Stats s) { return s.running; });
  all.add("vllm:num_requests_waiting", "gauge", "Sequences that wait, also for their model.",
          [](Stats s) { return s.waiting; });
  all.add("vllm:kv_cache_usage_perc", "gauge", "Share of the cache's blocks in use, 0 to 1.",
          [](Stats s) { return share_of(s.used_blocks, s.blocks); });
  all.add("strata:kv_cache_kept_perc", "gauge", "Share of its blocks kept for later prompts.",
          [](Stats s) { return share_of(s.cached_blocks, s.blocks); });
  all.add("vllm:num_preemptions_total", "counter", "Sequences that gave up their blocks.",
          [](Stats s) { return s.preemptions; });
  all.add("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up in the cache.",
          [](Stats s) { return s.prefix_queries; });
  all.add("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found there.",
          [](Stats s) { return s.prefix_hits; });
  all.add("strata:prefix_cache_evictions_total", "counter", "Kept blocks that others took.",
          [](Stats s) { return s.prefix_evictions; });
  all.add("strata:steps_total", "counter", "Steps of the engine.", [](Stats s) { return s.steps; });
  all.add("strata:rows_total", "counter", "Tokens computed.", [](Stats s) { return s.rows; });
  const auto seconds = [&](std::string_view part, std::string_view help, auto value) {
    all.add(fmt::format("strata:step_{}_seconds_total", part), "counter", help, value);
  };
  seconds("plan", "Time of steps spent on scheduling.", [](Stats s) { return s.plan_seconds; });
  seconds("stall", "In which the device waited for weights from disk or for a processor.",
          [](Stats s) { return s.stall_seconds; });
  seconds("compute", "On the device, without stalls.", [](Stats s) { return s.compute_seconds; });
  seconds("sample", "On choosing tokens, masks of grammars included.",
          [](Stats s) { return s.sample_seconds; });
  seconds("send", "On handing tokens out.", [](Stats s) { return s.send_seconds; });
  return all.text();
}

// What models share counts once, as the plan with the least of it has it: those of further models
// count what others hold as the program's.
std::string memory_metrics(const std::vector<ModelStatus>& models) {
  std::string text = metric_head("strata:memory_bytes", "gauge",
                                 "Memory by owner; what all models share has no model's name.");
  const auto add = [&](std::string_view model, std::string_view owner, Bytes bytes) {
    text += fmt::format("strata:memory_bytes{{{},owner=\"{}\"}} {}\n", model_label(model), owner,
                        bytes);
  };
  std::map<std::string, Bytes> shared;
  for (const ModelStatus& status : models) {
    if (!status.model) continue;
    for (const auto& [owner, bytes] : status.model->engine().memory_by_owner()) {
      if (owner != "program" && owner != "staging" && owner != "requests") {
        add(status.file.name, owner, bytes);
        continue;
      }
      const auto known = shared.try_emplace(owner, bytes).first;
      known->second = std::min(known->second, bytes);
    }
  }
  for (const auto& [owner, bytes] : shared) add("", owner, bytes);
  return text;
}

void slots(Service& service, const Router::Call& call) {
  json::array out;
  for (const ModelStatus& status : service.models().list()) {
    if (!status.model) continue;
    for (const SlotInfo& slot : status.model->delivery().slots()) {
      json::object one{{"id", slot.id.value},
                       {"model", status.file.name},
                       {"state", slot.state},
                       {"is_processing", !slot.over},
                       {"n_ctx", status.model->engine().context()},
                       {"n_prompt_tokens", slot.prompt_tokens},
                       {"n_prompt_tokens_processed", slot.prompt_computed},
                       {"n_prompt_tokens_cached", slot.cached_tokens},
                       {"n_decoded", slot.completion_tokens},
                       {"age_seconds", slot.age_seconds}};
      one["first_difference"] =
          slot.first_difference >= 0 ? json::value(slot.first_difference) : json::value(nullptr);
      out.push_back(std::move(one));
    }
  }
  call.exchange->respond(json_response(std::move(out)));
}

// What a path needs a loaded model for.
using WithModel = std::function<Answer<json::object>(const ServedModel&, Fields&)>;

void with_model(Service& service, const Router::Call& call, WithModel work) {
  auto body = parse_body(call.request.body);
  if (!body.ok()) return call.exchange->respond(openai_error(body.status()));
  const auto object = std::make_shared<json::object>(std::move(*body));
  Fields fields(*object);
  const auto name = fields.text("model");
  if (!name.ok()) return call.exchange->respond(openai_error(name.status()));
  const auto done = [object, fields, work = std::move(work), exchange = call.exchange](
                        const Answer<std::shared_ptr<ModelLease>>& leased) mutable {
    if (!leased.ok()) return exchange->respond(openai_error(leased.status()));
    auto answer = work((*leased)->model(), fields);
    if (!answer.ok()) return exchange->respond(openai_error(answer.status()));
    if (const auto warnings = fields.warnings(); !warnings.empty())
      (*answer)["warnings"] = json::value_from(warnings);
    exchange->respond(json_response(*answer));
  };
  service.acquire(name->value_or(""), std::nullopt, call.exchange, done);
}

json::array tokens_json(const std::vector<TokenId>& tokens) {
  json::array out;
  for (const TokenId token : tokens) out.emplace_back(token);
  return out;
}

Answer<json::object> tokenize(const ServedModel& model, Fields& fields) {
  STRATA_ASSIGN(const auto content, fields.text("content"));
  if (!content) return fields.wrong("content", "is missing");
  if (static_cast<Bytes>(content->size()) > model.most_text())
    return fields.wrong("content", fmt::format("is longer than {} bytes", model.most_text()));
  STRATA_ASSIGN(const auto special, fields.boolean("add_special"));
  STRATA_ASSIGN(const auto parse, fields.boolean("parse_special"));
  const bool add = special.value_or(false);
  STRATA_ASSIGN(const auto tokens, model.tokenizer().encode(*content, parse.value_or(true),
                                                            {.add_bos = add, .add_eos = add}));
  return json::object{{"tokens", tokens_json(tokens)}};
}

Answer<json::object> detokenize(const ServedModel& model, Fields& fields) {
  STRATA_ASSIGN(const json::array* list, fields.array("tokens"));
  if (list == nullptr) return fields.wrong("tokens", "is missing");
  std::vector<TokenId> tokens;
  for (const json::value& each : *list) {
    boost::system::error_code error;
    const auto token = each.is_number() ? each.to_number<TokenId>(error) : -1;
    if (error || token < 0) return fields.wrong("tokens", "contains invalid tokens");
    tokens.push_back(token);
  }
  STRATA_ASSIGN(const std::string text,
                model.tokenizer().decode(tokens, {.include_special = true}));
  return json::object{{"content", replace_invalid_utf8(text)}};
}

// As a chat would be rendered.
Answer<json::object> apply_template(const Service& service, const ServedModel& model,
                                    Fields& fields) {
  Generation generation;
  if (fields.value("messages") == nullptr) return fields.wrong("messages", "is missing");
  STRATA_CHECK(take_messages(fields, generation));
  STRATA_CHECK(check_tool_schemas(fields));
  STRATA_CHECK(take_tools(fields, generation));
  STRATA_ASSIGN(const json::object* more, fields.object("chat_template_kwargs"));
  if (more != nullptr) generation.template_inputs = *more;
  service.neutralize(generation);
  STRATA_ASSIGN(const auto rendered, render_chat(model, generation));
  json::object out{{"prompt", replace_invalid_utf8(jinja::join(rendered))}};
  for (const std::string& warning : generation.warnings) fields.add_warning(warning);
  return out;
}

}  // namespace

void add_native(Router& router, Service& service) {
  router.add("GET", "/health", [&service](const Router::Call& call) { health(service, call); });
  router.add("GET", "/metrics", [&service](const Router::Call& call) {
    http::HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    const std::vector<ModelStatus> models = service.models().list();
    response.body = service.metrics().text() + engine_metrics(models) + memory_metrics(models);
    call.exchange->respond(std::move(response));
  });
  router.add("GET", "/slots", [&service](const Router::Call& call) { slots(service, call); });
  for (const auto& each : {std::pair<const char*, WithModel>{"/tokenize", tokenize},
                           {"/detokenize", detokenize},
                           {"/apply-template", [&service](const ServedModel&model, Fields&fields) {
                              return apply_template(service, model, fields);
                            }}})
    router.add("POST", each.first, [&service, work = each.second](const Router::Call& call) {
      with_model(service, call, work);
    });
}

}  // namespace strata::serve
