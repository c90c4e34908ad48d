// The OpenAI protocol: chat completions, completions, models.
#include <boost/json.hpp>

#include "serve/json_response.h"
#include "serve/openai_request.h"
#include "serve/openai_writer.h"
#include "serve/service.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

// A comment, which clients of server-sent events skip.
constexpr std::string_view kSignOfLife = ": waiting\n\n";

using OpenAiReader = Answer<OpenAiRequest> (*)(std::string_view body);

Answer<OpenAiRequest> read_call(const http::HttpRequest& call, OpenAiReader read) {
  STRATA_ASSIGN(OpenAiRequest request, read(call.body));
  for (Generation& generation : request.generations)
    generation.client = client_of(call, generation.user);
  return request;
}

void answer(Service& service, Router::Call call, OpenAiReader read, bool chat) {
  auto made = read_call(call.request, read);
  if (!made.ok()) return call.exchange->respond(openai_error(made.status()));
  OpenAiRequest& request = *made;
  const OpenAiStyle style{chat, request.stream, request.include_usage, request.wants_logprobs, {}};
  AnswerForm form;
  form.writer = [style](const ServedModel& model, std::vector<std::string> warnings) {
    OpenAiStyle all = style;
    all.warnings = std::move(warnings);
    return openai_writer(model, std::move(all));
  };
  form.refuse = openai_error;
  form.read_again = [again = std::move(call.request), read]() -> Answer<std::vector<Generation>> {
    STRATA_ASSIGN(OpenAiRequest same, read_call(again, read));
    return std::move(same.generations);
  };
  if (request.stream) {
    form.stream.emplace();
    form.stream->headers = {{"Cache-Control", "no-cache"}};
    form.stream->keep_alive_chunk = kSignOfLife;
    form.stream->error_prefix = "data: ";
    form.stream->error_suffix = "\n\ndata: [DONE]\n\n";
  }
  service.answer(std::move(request.generations), std::move(form), std::move(call.exchange));
}

json::object model_json(const ModelStatus& status) {
  json::object out{{"id", status.file.name},
                   {"object", "model"},
                   {"created", status.file.modified_at},
                   {"owned_by", "strata"},
                   {"state", to_string(status.state)}};
  // One that is not loaded may get less, where memory is short.
  const std::int32_t context =
      status.model ? status.model->engine().context() : status.file.context;
  if (context > 0) out["max_model_len"] = context;
  return out;
}

}  // namespace

void add_openai(Router& router, Service& service) {
  router.add("POST", "/v1/chat/completions", [&service](Router::Call call) {
    answer(service, std::move(call), read_chat_request, true);
  });
  router.add("POST", "/v1/completions", [&service](Router::Call call) {
    answer(service, std::move(call), read_completion_request, false);
  });
  router.add("GET", "/v1/models", [&service](const Router::Call& call) {
    json::array list;
    for (const ModelStatus& status : service.models().list()) list.push_back(model_json(status));
    call.exchange->respond(json_response({{"object", "list"}, {"data", std::move(list)}}));
  });
  router.add("GET", "/v1/models/*", [&service](const Router::Call& call) {
    const auto status = service.models().find(call.rest);
    if (!status) return call.exchange->respond(openai_error(service.models().unknown(call.rest)));
    call.exchange->respond(json_response(model_json(*status)));
  });
}

}  // namespace strata::serve
