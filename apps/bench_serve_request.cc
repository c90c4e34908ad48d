#include "bench_serve_request.h"

#include <utility>

#include "base/ascii.h"
#include "base/printable.h"
#include "bench_serve_chunk.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostEventBytes = std::size_t{16} << 20;
constexpr std::size_t kMostRefusalBytes = std::size_t{64} << 10;

// The member of that name, or null where there is none or `value` is no object.
const json::value* member(const json::value* value, std::string_view name) {
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::int64_t integer(const json::value* value, std::int64_t otherwise) {
  boost::system::error_code error;
  const auto number =
      value != nullptr && value->is_number() ? value->to_number<std::int64_t>(error) : otherwise;
  return error ? otherwise : number;
}

std::string error_text(const json::value& error) {
  const json::value* message = member(&error, "message");
  const json::value& said = message == nullptr ? error : *message;
  return said.is_string() ? std::string(said.get_string()) : json::serialize(said);
}

}  // namespace

struct ServeAsker::Request {
  ServeRecord record;
  EventReader events;
  std::string refusal;  // the body of an answer other than 200
  bool finished = false;
  bool counted = false;  // by the server
  Take done;
  OnText on_text;
};

std::string_view refusal_hint(int http_status) {
  return http_status == 401 ? " (see --api-key-file)" : "";
}

bool EventReader::feed(std::string_view bytes, const std::function<void(std::string_view)>& take) {
  constexpr std::string_view kData = "data:";
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    if (end == bytes.size() || !line_.empty()) {
      line_.append(line);
      if (line_.size() > kMostEventBytes) return false;
      line = line_;
    }
    if (end == bytes.size()) return true;
    bytes.remove_prefix(end + 1);
    if (line.starts_with(kData)) take(trimmed(line.substr(kData.size())));
    line_.clear();
  }
  return true;
}

std::string ServeAsker::body_of(const Messages& messages, std::int32_t answer_tokens) const {
  json::object body{{"model", protocol_.model},
                    {"stream", true},
                    {"stream_options", json::object{{"include_usage", true}}},
                    {"max_tokens", answer_tokens},
                    {"temperature", 0}};
  if (protocol_.ignore_end) body["ignore_eos"] = true;
  if (protocol_.chat) {
    json::array list;
    for (const Message& message : messages)
      list.push_back(json::object{{"role", message.role}, {"content", message.text}});
    body["messages"] = std::move(list);
  } else {
    std::string text;
    for (const Message& message : messages) {
      if (!text.empty()) text += '\n';
      text += message.text;
    }
    body["prompt"] = text;
  }
  for (const auto& [name, value] : protocol_.more) body[name] = value;
  return json::serialize(body);
}

ServeAsker::Id ServeAsker::ask(std::string group, const Messages& messages,
                               std::int32_t answer_tokens, Take done, OnText on_text) {
  const auto request = std::make_shared<Request>();
  request->record.group = std::move(group);
  request->done = std::move(done);
  request->on_text = std::move(on_text);
  http::ClientRequest sent;
  sent.path = protocol_.chat ? "/v1/chat/completions" : "/v1/completions";
  sent.body = body_of(messages, answer_tokens);
  sent.headers = protocol_.headers;
  sent.timeout = protocol_.timeout;
  const auto id = std::make_shared<Id>(0);
  request->record.start = now();
  *id = client_.send(
      std::move(sent),
      {[this, request](int status, std::string_view bytes) { on_body(*request, status, bytes); },
       [this, id](int status, http::Failure failure) { end(*id, status, failure); }});
  open_[*id] = request;
  return *id;
}

void ServeAsker::on_body(Request& request, int status, std::string_view bytes) const {
  if (status != 200) {
    request.refusal +=
        bytes.substr(0, kMostRefusalBytes - std::min(kMostRefusalBytes, request.refusal.size()));
    return;
  }
  const std::size_t before = request.record.events.size();
  const bool fits =
      request.events.feed(bytes, [&](std::string_view data) { on_event(request, data); });
  if (!fits) request.record.error = "malformed";
  if (request.record.events.size() > before && request.on_text) request.on_text(request.record);
}

// An event's error or usage; false where it is an error.
bool ServeAsker::read_more(Request& request, std::string_view data) {
  ServeRecord& record = request.record;
  boost::system::error_code error;
  const json::value event = json::parse({data.data(), data.size()}, error);
  if (const json::value* failed = member(&event, "error")) {
    record.error = "failed";
    record.detail = error_text(*failed);
    return false;
  }
  if (const json::value* usage = member(&event, "usage"); usage != nullptr && usage->is_object()) {
    record.prompt_tokens = integer(member(usage, "prompt_tokens"), 0);
    record.answer_tokens = integer(member(usage, "completion_tokens"), 0);
    record.cached_tokens =
        integer(member(member(usage, "prompt_tokens_details"), "cached_tokens"), 0);
    request.counted = true;
  }
  return true;
}

void ServeAsker::on_event(Request& request, std::string_view data) const {
  ServeRecord& record = request.record;
  if (data == "[DONE]") {
    request.finished = true;
    return;
  }
  const std::optional<AnswerChunk> chunk = read_chunk(data);
  if (!chunk) {
    record.error = "malformed";
    return;
  }
  if (chunk->says_more && !read_more(request, data)) return;
  record.text += chunk->text;
  if (!chunk->text.empty() || chunk->calls_tools) record.events.push_back(now());
}

void ServeAsker::end(Id id, int status, http::Failure failure) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const std::shared_ptr<Request> request = std::move(found->second);
  open_.erase(found);
  ServeRecord& record = request->record;
  record.end = now();
  // Without a count of the server's, an event counts as a token.
  if (!request->counted) record.answer_tokens = static_cast<std::int64_t>(record.events.size());
  if (failure == http::Failure::kConnect) {
    record.error = "no connection";
  } else if (failure == http::Failure::kTimeout) {
    record.error = "timeout";
  } else if (failure == http::Failure::kMalformed) {
    record.error = "malformed";
  } else if (status != 0 && status != 200) {
    record.error = fmt::format("HTTP {}", status);
    boost::system::error_code error;
    const json::value body = json::parse(request->refusal, error);
    const json::value* said = error ? nullptr : member(&body, "error");
    record.detail = said == nullptr ? request->refusal : error_text(*said);
  } else if (record.error.empty() && (failure == http::Failure::kClosed || !request->finished)) {
    record.error = "cut off";
  }
  record.detail = printable(record.detail, 200);
  record.detail += refusal_hint(status);
  request->done(std::move(record));
}

void ServeAsker::leave(Id id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const std::shared_ptr<Request> request = std::move(found->second);
  open_.erase(found);
  client_.cancel(id);
  ServeRecord& record = request->record;
  record.left = true;
  record.end = now();
  record.answer_tokens = static_cast<std::int64_t>(record.events.size());
  request->done(std::move(record));
}

void ServeAsker::leave_all() {
  while (!open_.empty()) leave(open_.begin()->first);
}

}  // namespace strata::apps
