#include "bench_serve_request.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/printable.h"
#include "bench_serve_chunk.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostEventBytes = std::size_t{16} << 20;
constexpr std::size_t kMostHeadBytes = std::size_t{64} << 10;
constexpr std::size_t kMostAnswerBytes = std::size_t{32} << 20;  // of its text and its times
constexpr std::int64_t kMostUsageTokens = std::int64_t{1} << 31;

// The member of that name, or null where there is none or `value` is no object.
const json::value* member(const json::value* value, std::string_view name) {
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

// How many tokens a server says there were; nothing where it does not say, or says what cannot be.
class Count {
 public:
  explicit Count(const json::value* said) : said_(said != nullptr && !said->is_null()) {
    if (!said_ || !said->is_number()) return;
    boost::system::error_code error;
    const auto tokens = said->to_number<std::int64_t>(error);
    if (!error && tokens >= 0 && tokens <= kMostUsageTokens) tokens_ = tokens;
  }
  const std::optional<std::int64_t>& tokens() const { return tokens_; }
  bool odd() const { return said_ && !tokens_; }

 private:
  bool said_;
  std::optional<std::int64_t> tokens_;
};

std::string error_text(const json::value& error) {
  const json::value* message = member(&error, "message");
  const json::value& said = message == nullptr ? error : *message;
  return said.is_string() ? std::string(said.get_string()) : json::serialize(said);
}

// As much of it as a message has room for.
std::string shown(std::string_view text) { return printable(trimmed(text), 200); }

// What an answer that is one JSON object says of an error.
std::optional<std::string> error_in(std::string_view body) {
  boost::system::error_code error;
  const json::value value = json::parse({body.data(), body.size()}, error);
  const json::value* said = error ? nullptr : member(&value, "error");
  return said == nullptr ? std::nullopt : std::optional(error_text(*said));
}

}  // namespace

struct ServeAsker::Request {
  Id id = 0;
  ServeRecord record;
  EventReader events;
  std::string head;       // of a body without events, from its beginning
  bool streams = false;   // an event came
  bool finished = false;  // the last one did
  bool counted = false;   // by the server
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
  request->record.start = now();
  request->id = client_.send(
      std::move(sent),
      {[this, request](int status, std::string_view bytes) { on_body(*request, status, bytes); },
       [this, request](int status, http::Failure failure) { on_end(*request, status, failure); }});
  open_[request->id] = request;
  return request->id;
}

void ServeAsker::on_body(Request& request, int status, std::string_view bytes) {
  if (!request.streams) request.head += bytes.substr(0, kMostHeadBytes - request.head.size());
  if (status != 200) return;
  ServeRecord& record = request.record;
  const std::size_t before = record.events.size();
  const bool fits =
      request.events.feed(bytes, [&](std::string_view data) { on_event(request, data); });
  if (!fits && record.error.empty()) {
    record.error = "malformed";
    record.detail = fmt::format("an event of more than {} MiB", kMostEventBytes >> 20);
  }
  const bool over = request.finished || !record.error.empty();
  if (record.events.size() > before && request.on_text) request.on_text(record);
  if (!over || !take(request.id)) return;
  client_.cancel(request.id);
  hand_over(request);
}

// An event's error or usage; false where it is an error.
bool ServeAsker::read_more(Request& request, std::string_view data) {
  ServeRecord& record = request.record;
  boost::system::error_code error;
  const json::value event = json::parse({data.data(), data.size()}, error);
  if (const json::value* failed = member(&event, "error")) {
    record.error = "failed";
    record.detail = shown(error_text(*failed));
    return false;
  }
  if (const json::value* usage = member(&event, "usage"); usage != nullptr && usage->is_object()) {
    const Count prompt(member(usage, "prompt_tokens"));
    const Count answer(member(usage, "completion_tokens"));
    const Count cached(member(member(usage, "prompt_tokens_details"), "cached_tokens"));
    record.prompt_tokens = prompt.tokens().value_or(0);
    record.answer_tokens = answer.tokens().value_or(0);
    record.cached_tokens = cached.tokens().value_or(0);
    request.counted = answer.tokens().has_value();
    const bool odd = prompt.odd() || answer.odd() || cached.odd();
    record.odd_usage = odd ? shown(json::serialize(*usage)) : "";
  }
  return true;
}

void ServeAsker::on_event(Request& request, std::string_view data) const {
  ServeRecord& record = request.record;
  if (request.finished || !record.error.empty()) return;
  request.streams = true;
  if (data == "[DONE]") {
    request.finished = true;
    return;
  }
  const std::optional<AnswerChunk> chunk = read_chunk(data);
  if (!chunk) {
    record.error = "malformed";
    record.detail = shown(data);
    return;
  }
  if (chunk->says_more && !read_more(request, data)) return;
  const std::size_t times = (record.events.size() + 1) * sizeof(record.events[0]);
  if (record.text.size() + chunk->text.size() + times > kMostAnswerBytes) {
    record.error = "endless";
    record.detail =
        fmt::format("no end after {} texts of {} bytes", record.events.size(), record.text.size());
    return;
  }
  record.text += chunk->text;
  if (!chunk->text.empty() || chunk->calls_tools) record.events.push_back(now());
}

void ServeAsker::on_end(Request& request, int status, http::Failure failure) {
  if (!take(request.id)) return;
  ServeRecord& record = request.record;
  const bool comments = status == 200 && request.head.starts_with(':');
  const bool streams = request.streams || comments;
  const auto said = streams ? std::nullopt : error_in(request.head);
  if (failure == http::Failure::kConnect)
    record.error = "no connection";
  else if (failure == http::Failure::kTimeout)
    record.error = "timeout";
  else if (failure == http::Failure::kMalformed)
    record.error = "malformed";
  else if (status != 0 && status != 200)
    record.error = fmt::format("HTTP {}", status);
  else if (said)
    record.error = "failed";
  else if (failure == http::Failure::kNone && !streams && !request.head.empty())
    record.error = "no stream";
  else
    record.error = "cut off";
  if (!streams)
    record.detail = shown(said.value_or(request.head)) + std::string(refusal_hint(status));
  hand_over(request);
}

std::shared_ptr<ServeAsker::Request> ServeAsker::take(Id id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return nullptr;
  auto request = std::move(found->second);
  open_.erase(found);
  return request;
}

void ServeAsker::hand_over(Request& request) const {
  ServeRecord& record = request.record;
  record.end = now();
  // Without a count of the server's that can be true, an event counts as a token.
  if (!request.counted || record.answer_tokens == 0)
    record.answer_tokens = static_cast<std::int64_t>(record.events.size());
  request.done(std::move(record));
}

void ServeAsker::leave(Id id) {
  const std::shared_ptr<Request> request = take(id);
  if (!request) return;
  client_.cancel(id);
  request->record.left = true;
  hand_over(*request);
}

void ServeAsker::leave_all() {
  while (!open_.empty()) leave(open_.begin()->first);
}

}  // namespace strata::apps
