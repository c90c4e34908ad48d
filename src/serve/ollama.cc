// The Ollama protocol: generate, chat, and what its clients ask about models.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>

#include "base/printable.h"
#include "gguf/manifest.h"
#include "serve/body.h"
#include "serve/json_response.h"
#include "serve/ollama_request.h"
#include "serve/service.h"
#include "serve/times.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

constexpr const char* kNdjson = "application/x-ndjson";

http::HttpResponse refuse(const Refusal& refusal) {
  json::object body = refusal.details;
  body["error"] = replace_invalid_utf8(refusal.message);
  http::HttpResponse response = json_response(body, refusal.http_status);
  add_retry_hints(refusal, response);
  return response;
}

void add_warnings_to(json::object& out, const std::vector<std::string>& warnings) {
  if (!warnings.empty()) out["warnings"] = json::value_from(warnings);
}

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

struct OllamaStyle {
  bool chat = true;
  bool stream = true;
  std::vector<std::string> warnings;
};

class OllamaWriter final : public AnswerWriter {
 public:
  OllamaWriter(const ServedModel& model, OllamaStyle style)
      : name_(model.file().name), style_(std::move(style)) {}

  void token(std::int32_t, const TokenEvent& event, ClientStream& client) override {
    if (style_.stream) send(event.delta, client);
  }
  void end_choice(std::int32_t, Ending ending, const AnswerDelta& rest, const AnswerText& text,
                  ClientStream& client) override {
    if (style_.stream) send(rest, client);
    reason_ = ending == Ending::kLength ? "length" : "stop";
    content_ = text.content();
    thinking_ = text.reasoning();
    for (const ToolCall& call : text.calls()) add_call(call);
  }
  void end(const Usage& usage, ClientStream& client) override {
    if (style_.stream && !calls_.empty()) {
      json::object out = head();
      out["message"] =
          json::object{{"role", "assistant"}, {"content", ""}, {"tool_calls", std::move(calls_)}};
      out["done"] = false;
      client.write(json::serialize(out) + "\n");
      calls_.clear();
    }
    json::object out = head();
    if (style_.stream)
      add_text(out, "", "");
    else
      add_text(out, thinking_, content_);
    add_ending(out, usage);
    if (!style_.stream) return client.respond(json_response(out));
    client.write(json::serialize(out) + "\n");
    client.finish();
  }
  void fail(const Refusal& refusal, ClientStream& client) override { client.fail(refuse(refusal)); }

 private:
  json::object head() const { return {{"model", name_}, {"created_at", rfc3339_now()}}; }

  void add_text(json::object& out, const std::string& thinking, const std::string& content) {
    if (!style_.chat) {
      out["response"] = content;
      if (!thinking.empty()) out["thinking"] = thinking;
      return;
    }
    json::object message{{"role", "assistant"}, {"content", content}};
    if (!thinking.empty()) message["thinking"] = thinking;
    if (!calls_.empty()) message["tool_calls"] = std::move(calls_);
    out["message"] = std::move(message);
  }

  void add_ending(json::object& out, const Usage& usage) {
    out["done"] = true;
    out["done_reason"] = reason_;
    out["total_duration"] = nanoseconds(usage.total_seconds);
    out["load_duration"] =
        nanoseconds(std::max(0.0, usage.total_seconds - usage.queued_seconds -
                                      usage.prompt_seconds - usage.generation_seconds));
    out["prompt_eval_count"] = usage.prompt_tokens;
    out["prompt_eval_duration"] = nanoseconds(usage.prompt_seconds);
    out["eval_count"] = usage.completion_tokens;
    out["eval_duration"] = nanoseconds(usage.generation_seconds);
    out["prompt_cached_count"] = usage.cached_tokens;
    add_warnings_to(out, style_.warnings);
  }

  void send(const AnswerDelta& delta, ClientStream& client) {
    if (delta.content.empty() && delta.reasoning.empty()) return;
    json::object out = head();
    add_text(out, delta.reasoning, delta.content);
    out["done"] = false;
    client.write(json::serialize(out) + "\n");
  }

  // The protocol's arguments are an object. Of a call that is cut it shows nothing.
  void add_call(const ToolCall& call) {
    auto arguments = call.complete ? arguments_of(call.arguments) : std::nullopt;
    if (!arguments) return;
    calls_.push_back(json::object{
        {"function", json::object{{"name", call.name}, {"arguments", std::move(*arguments)}}}});
  }

  const std::string name_;
  OllamaStyle style_;
  std::string reason_, content_, thinking_;
  json::array calls_;
};

// The name of the model that the client means; what it said where that is none.
std::string known_name(Service& service, const std::string& said) {
  const auto status = service.models().find(said);
  return status ? status->file.name : said;
}

// An empty prompt loads a model, or with keep_alive 0 lets it go.
void load_only(Service& service, const OllamaRequest& request, const ExchangePtr& exchange) {
  exchange->stand_by({{}, refuse(Refusal(503, "overloaded_error", "the server is stopping"))});
  const std::string name = known_name(service, request.generation.model);
  const auto done = [chat = request.chat, name,
                     warnings = request.generation.warnings](std::string_view reason) {
    json::object out{{"model", name}, {"created_at", rfc3339_now()}};
    if (chat)
      out["message"] = json::object{{"role", "assistant"}, {"content", ""}};
    else
      out["response"] = "";
    out["done"] = true;
    out["done_reason"] = reason;
    add_warnings_to(out, warnings);
    return json_response(out);
  };
  if (request.generation.keep_alive == std::chrono::milliseconds(0)) {
    if (!service.models().find(name))
      return exchange->respond(refuse(service.models().unknown(name)));
    (void)service.models().unload(name);  // one that is not loaded need not go
    return exchange->respond(done("unload"));
  }
  service.acquire(name, request.generation.keep_alive, exchange,
                  [exchange, done](const Answer<std::shared_ptr<ModelLease>>& leased) {
                    exchange->respond(leased.ok() ? done("load") : refuse(leased.status()));
                  });
}

std::string sign_of_life(const std::string& model, bool chat) {
  json::object out{{"model", model}, {"created_at", rfc3339_now()}};
  if (chat)
    out["message"] = json::object{{"role", "assistant"}, {"content", ""}};
  else
    out["response"] = "";
  out["done"] = false;
  return json::serialize(out) + "\n";
}

using OllamaReader = Answer<OllamaRequest> (*)(std::string_view body);

Answer<std::vector<Generation>> generations_of(OllamaRequest request,
                                               const http::HttpRequest& call) {
  std::vector<Generation> one;
  one.push_back(std::move(request.generation));
  one.front().client = client_of(call, {});
  return one;
}

void answer(Service& service, Router::Call call, OllamaReader reader) {
  auto read = reader(call.request.body);
  if (!read.ok()) return call.exchange->respond(refuse(read.status()));
  if (read->load_only) return load_only(service, *read, call.exchange);
  AnswerForm form;
  form.writer = [chat = read->chat, stream = read->stream](const ServedModel& model,
                                                           std::vector<std::string> warnings) {
    return std::make_unique<OllamaWriter>(model, OllamaStyle{chat, stream, std::move(warnings)});
  };
  form.refuse = refuse;
  if (read->stream) {
    form.stream.emplace();
    form.stream->content_type = kNdjson;
    form.stream->keep_alive_chunk =
        sign_of_life(known_name(service, read->generation.model), read->chat);
    form.stream->error_suffix = "\n";
  }
  auto generations = generations_of(std::move(*read), call.request).value();
  form.read_again = [again = std::move(call.request), reader]() -> Answer<std::vector<Generation>> {
    STRATA_ASSIGN(OllamaRequest request, reader(again.body));
    return generations_of(std::move(request), again);
  };
  service.answer(std::move(generations), std::move(form), std::move(call.exchange));
}

json::object details_of(const ModelFile& file) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", file.architecture},
          {"families", json::array{file.architecture}},
          {"parameter_size", file.parameter_size},
          {"quantization_level", file.quantization}};
}

json::object entry_of(const ModelStatus& status) {
  return {{"name", status.file.name},
          {"model", status.file.name},
          {"size", status.file.bytes},
          {"digest", status.file.digest},
          {"details", details_of(status.file)}};
}

void tags(Service& service, const Router::Call& call) {
  json::array list;
  for (const ModelStatus& status : service.models().list()) {
    json::object entry = entry_of(status);
    entry["modified_at"] = rfc3339(std::chrono::system_clock::from_time_t(status.file.modified_at));
    list.push_back(std::move(entry));
  }
  call.exchange->respond(json_response({{"models", std::move(list)}}));
}

void running(Service& service, const Router::Call& call) {
  json::array list;
  for (const ModelStatus& status : service.models().list()) {
    if (!status.model) continue;
    json::object entry = entry_of(status);
    entry["size"] = status.model->memory();
    entry["size_vram"] = 0;
    entry["context_length"] = status.model->engine().context();
    // Ollama's clients expect a time; "never" is far away.
    const auto left =
        status.expires_in < KeepAlive(0) ? std::chrono::hours(24 * 365 * 100) : status.expires_in;
    entry["expires_at"] = rfc3339(std::chrono::system_clock::now() + left);
    list.push_back(std::move(entry));
  }
  call.exchange->respond(json_response({{"models", std::move(list)}}));
}

// Older clients say `name`.
Answer<std::string> model_name(Fields& fields) {
  STRATA_ASSIGN(const auto model, fields.text("model"));
  STRATA_ASSIGN(const auto name, fields.text("name"));
  return model.value_or(name.value_or(""));
}

// Models come by `strata pull`; what is here already needs none.
Answer<json::object> pull(Service& service, std::string_view body) {
  STRATA_ASSIGN(const json::object object, parse_body(body));
  Fields fields(object);
  STRATA_ASSIGN(const std::string name, model_name(fields));
  fields.accept({"insecure", "stream"});
  if (!service.models().find(name))
    return Refusal(404, "not_found_error",
                   fmt::format("this server does not serve '{0}'; fetch it with `strata pull` if "
                               "`strata ls` does not list it, and load it at /v1/admin/load-model "
                               "or start the server with it",
                               printable(name, 200)),
                   "model");
  json::object out{{"status", "success"}};
  add_warnings_to(out, fields.warnings());
  return out;
}

Answer<json::object> show(Service& service, std::string_view body) {
  STRATA_ASSIGN(const json::object object, parse_body(body));
  Fields fields(object);
  STRATA_ASSIGN(const std::string name, model_name(fields));
  STRATA_ASSIGN(const auto verbose, fields.boolean("verbose"));
  const auto status = service.models().find(name);
  if (!status) return service.models().unknown(name);
  STRATA_ASSIGN(const ModelManifest manifest, ModelManifest::open(status->file.path));
  json::object out{{"details", details_of(status->file)}};
  const auto source = manifest.metadata().get_string("tokenizer.chat_template");
  json::array capabilities{"completion"};
  if (source.ok()) {
    out["template"] = replace_invalid_utf8(std::string(*source));
    const auto chat = ChatTemplate::from_metadata(manifest.metadata());
    if (chat.ok() && chat->tool_style() != ToolStyle::kNone) capabilities.emplace_back("tools");
    if (chat.ok() && chat->supports_thinking()) capabilities.emplace_back("thinking");
  }
  out["capabilities"] = std::move(capabilities);
  out["modified_at"] = rfc3339(std::chrono::system_clock::from_time_t(status->file.modified_at));
  out["model_info"] = service.metadata_json(manifest, verbose.value_or(false));
  add_warnings_to(out, fields.warnings());
  return out;
}

}  // namespace

void add_ollama(Router& router, Service& service) {
  router.refuse_with("/api/", refuse);
  router.add("GET", "/", [](const Router::Call& call) {
    http::HttpResponse response;
    response.content_type = "text/plain; charset=utf-8";
    response.body = "Ollama is running";  // what its clients look for
    call.exchange->respond(std::move(response));
  });
  router.add("GET", "/api/version", [&service](const Router::Call& call) {
    call.exchange->respond(json_response({{"version", service.version()}}));
  });
  router.add("POST", "/api/chat",
             [&service](Router::Call call) { answer(service, std::move(call), read_ollama_chat); });
  router.add("POST", "/api/generate", [&service](Router::Call call) {
    answer(service, std::move(call), read_ollama_generate);
  });
  router.add("GET", "/api/tags", [&service](const Router::Call& call) { tags(service, call); });
  router.add("GET", "/api/ps", [&service](const Router::Call& call) { running(service, call); });
  router.add("POST", "/api/pull", [&service](const Router::Call& call) {
    const auto pulled = pull(service, call.request.body);
    http::HttpResponse response = pulled.ok() ? json_response(*pulled) : refuse(pulled.status());
    response.content_type = kNdjson;
    response.body += '\n';
    call.exchange->respond(std::move(response));
  });
  router.add("POST", "/api/show", [&service](const Router::Call& call) {
    const auto shown = show(service, call.request.body);
    call.exchange->respond(shown.ok() ? json_response(*shown) : refuse(shown.status()));
  });
}

}  // namespace strata::serve
