#include "serve/openai_writer.h"

#include <fmt/format.h>

#include <ctime>
#include <map>
#include <random>
#include <set>

#include "base/printable.h"
#include "base/utf8.h"
#include "serve/json_response.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

std::string_view to_string(Ending ending) {
  switch (ending) {
    case Ending::kStop: return "stop";
    case Ending::kLength: return "length";
    case Ending::kToolCalls: return "tool_calls";
  }
  return "stop";
}

json::array bytes_of(std::string_view bytes) {
  json::array out;
  for (const char byte : bytes) out.emplace_back(static_cast<std::uint8_t>(byte));
  return out;
}

json::object chat_logprob(const Tokenizer& tokenizer, const LogProbability& of) {
  const TokenPiece piece = token_piece(tokenizer, of.token);
  return {{"token", piece.text}, {"logprob", of.value}, {"bytes", bytes_of(piece.bytes)}};
}

json::array chat_logprobs(const Tokenizer& tokenizer, const std::vector<LogProbability>& all) {
  if (all.empty()) return {};
  json::object token = chat_logprob(tokenizer, all.front());
  json::array top;
  for (std::size_t i = 1; i < all.size(); ++i) top.push_back(chat_logprob(tokenizer, all[i]));
  token["top_logprobs"] = std::move(top);
  return {std::move(token)};
}

// What of a prompt is sent back: its text, as far as tokens are whole characters.
std::string prompt_text(const Tokenizer& tokenizer, const std::vector<PromptToken>& tokens) {
  std::string bytes;
  for (const PromptToken& token : tokens) bytes += token_piece(tokenizer, token.token).bytes;
  return replace_invalid_utf8(bytes);
}

// Counts the characters of a text that comes in pieces, as replace_invalid_utf8() shows it.
class CharacterCount {
 public:
  // Those that are complete: a token that begins inside of a character has that one's offset.
  std::size_t complete() const { return complete_; }

  void add(std::string_view bytes) {
    open_ += bytes;
    std::size_t at = 0;
    while (at < open_.size()) {
      const Utf8Prefix prefix = utf8_prefix(std::string_view(open_).substr(at));
      if (prefix.kind == Utf8Prefix::Kind::kIncomplete) break;
      at += prefix.bytes;
      ++complete_;
    }
    open_.erase(0, at);
  }

 private:
  std::size_t complete_ = 0;
  std::string open_;  // the beginning of a character
};

// The lists that completions have for log-probabilities.
struct CompletionLogprobs {
  json::array tokens, values, top, offsets;
  CharacterCount text;  // so far

  void add(const Tokenizer& tokenizer, TokenId token, const std::vector<LogProbability>& all) {
    const TokenPiece piece = token_piece(tokenizer, token);
    tokens.emplace_back(piece.text);
    offsets.emplace_back(text.complete());
    text.add(piece.bytes);
    if (all.empty()) {
      values.emplace_back(nullptr);
      top.emplace_back(nullptr);
      return;
    }
    values.emplace_back(all.front().value);
    json::object best;
    for (std::size_t i = 1; i < all.size(); ++i)
      best.emplace(token_piece(tokenizer, all[i].token).text, all[i].value);
    top.emplace_back(std::move(best));
  }
  void add(const Tokenizer& tokenizer, const std::vector<PromptToken>& prompt) {
    for (const PromptToken& token : prompt) add(tokenizer, token.token, token.logprobs);
  }
  // What was added since the last time.
  json::object take() {
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(values)},
            {"top_logprobs", std::move(top)},
            {"text_offset", std::move(offsets)}};
  }
};

std::string new_id(std::string_view prefix) {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, random(), random(), random());
}

json::array call_deltas(const AnswerDelta& delta) {
  json::array out;
  for (const ToolCallDelta& call : delta.calls) {
    json::object one{{"index", call.index}};
    json::object function;
    if (!call.name.empty()) {
      one["id"] = call.id;
      one["type"] = "function";
      function["name"] = call.name;
    }
    function["arguments"] = call.arguments;
    one["function"] = std::move(function);
    out.push_back(std::move(one));
  }
  return out;
}

json::array whole_calls(const std::vector<ToolCall>& calls) {
  json::array out;
  for (const ToolCall& call : calls)
    out.push_back(json::object{
        {"id", call.id},
        {"type", "function"},
        {"function", json::object{{"name", call.name}, {"arguments", call.arguments}}}});
  return out;
}

class Writer : public AnswerWriter {
 public:
  Writer(const ServedModel& model, OpenAiStyle style)
      : tokenizer_(model.tokenizer()), style_(std::move(style)) {
    const std::string id = new_id(style_.chat ? "chatcmpl-" : "cmpl-");
    head_ = {{"id", id},
             {"object", ""},
             {"created", static_cast<std::int64_t>(std::time(nullptr))},
             {"model", model.file().name}};
  }

 protected:
  json::object head(std::string_view object) const {
    json::object out = head_;
    out["object"] = object;
    return out;
  }

  const Tokenizer& tokenizer_;
  OpenAiStyle style_;
  json::object head_;
};

class StreamWriter final : public Writer {
 public:
  StreamWriter(const ServedModel& model, OpenAiStyle style) : Writer(model, std::move(style)) {
    const json::object start = head(style_.chat ? "chat.completion.chunk" : "text_completion");
    prefix_ = "data: " + json::serialize(start);
    prefix_.pop_back();  // the closing brace
    if (style_.include_usage) prefix_ += ",\"usage\":null";
  }

  void prompt(std::int32_t index, const std::vector<PromptToken>& tokens,
              ClientStream& client) override {
    std::string logprobs = "null";
    if (style_.logprobs) {
      logprobs_[index].add(tokenizer_, tokens);
      logprobs = json::serialize(logprobs_[index].take());
    }
    send(index, json::serialize(prompt_text(tokenizer_, tokens)), logprobs, "null", client);
  }

  void token(std::int32_t index, const TokenEvent& event, ClientStream& client) override {
    if (event.delta.empty() && !style_.logprobs) return;
    emit(index, event.delta, &event, nullptr, client);
  }

  void end_choice(std::int32_t index, Ending ending, const AnswerDelta& rest, const AnswerText&,
                  ClientStream& client) override {
    if (!rest.empty()) emit(index, rest, nullptr, nullptr, client);
    const std::string_view reason = to_string(ending);
    emit(index, {}, nullptr, &reason, client);
  }

  void end(const Usage& usage, ClientStream& client) override {
    if (style_.include_usage) {
      json::object last = head(style_.chat ? "chat.completion.chunk" : "text_completion");
      last["choices"] = json::array();
      last["usage"] = openai_usage(usage);
      client.write("data: " + json::serialize(last) + "\n\n");
    }
    client.write("data: [DONE]\n\n");
    client.finish();
  }

  void fail(const Refusal& refusal, ClientStream& client) override {
    client.fail(openai_error(refusal));
  }

 private:
  // A chunk comes with every token, so it is put together as text.
  void emit(std::int32_t index, const AnswerDelta& delta, const TokenEvent* event,
            const std::string_view* reason, ClientStream& client) {
    send(index, style_.chat ? changes_of(index, delta) : json::serialize(delta.content),
         style_.logprobs && event != nullptr ? logprobs_of(index, *event) : "null",
         reason == nullptr ? "null" : json::serialize(*reason), client);
  }

  std::string changes_of(std::int32_t index, const AnswerDelta& delta) {
    std::string out = "{";
    const auto add = [&out](std::string_view name, std::string_view value) {
      if (out.size() > 1) out += ',';
      out.append(name).append(value);
    };
    if (started_.insert(index).second) add("\"role\":", "\"assistant\"");
    if (!delta.reasoning.empty()) add("\"reasoning_content\":", json::serialize(delta.reasoning));
    if (!delta.content.empty()) add("\"content\":", json::serialize(delta.content));
    if (!delta.calls.empty()) add("\"tool_calls\":", json::serialize(call_deltas(delta)));
    return out + '}';
  }

  std::string logprobs_of(std::int32_t index, const TokenEvent& event) {
    if (style_.chat)
      return json::serialize(json::object{{"content", chat_logprobs(tokenizer_, event.logprobs)}});
    CompletionLogprobs& logprobs = logprobs_[index];
    logprobs.add(tokenizer_, event.token, event.logprobs);
    return json::serialize(logprobs.take());
  }

  // `changes`, `logprobs` and `reason` are JSON.
  void send(std::int32_t index, std::string_view changes, std::string_view logprobs,
            std::string_view reason, ClientStream& client) {
    chunk_ = prefix_;
    if (!style_.warnings.empty()) {
      chunk_ += ",\"warnings\":" + json::serialize(json::value_from(style_.warnings));
      style_.warnings.clear();
    }
    chunk_.append(",\"choices\":[{\"index\":").append(std::to_string(index));
    chunk_.append(style_.chat ? ",\"delta\":" : ",\"text\":").append(changes);
    chunk_.append(",\"logprobs\":").append(logprobs);
    chunk_.append(",\"finish_reason\":").append(reason).append("}]}\n\n");
    client.write(chunk_);
  }

  std::string prefix_;
  std::string chunk_;
  std::set<std::int32_t> started_;
  std::map<std::int32_t, CompletionLogprobs> logprobs_;
};

class WholeWriter final : public Writer {
 public:
  using Writer::Writer;

  void prompt(std::int32_t index, const std::vector<PromptToken>& tokens, ClientStream&) override {
    Choice& choice = choices_[index];
    choice.echo = prompt_text(tokenizer_, tokens);
    if (style_.logprobs) choice.logprobs.add(tokenizer_, tokens);
  }

  void token(std::int32_t index, const TokenEvent& event, ClientStream&) override {
    if (!style_.logprobs) return;
    Choice& choice = choices_[index];
    if (style_.chat)
      for (auto& one : chat_logprobs(tokenizer_, event.logprobs))
        choice.chat_logprobs.push_back(std::move(one));
    else
      choice.logprobs.add(tokenizer_, event.token, event.logprobs);
  }

  void end_choice(std::int32_t index, Ending ending, const AnswerDelta&, const AnswerText& text,
                  ClientStream&) override {
    Choice& choice = choices_[index];
    json::object& out = choice.json;
    out["index"] = index;
    if (style_.chat) {
      json::object message{{"role", "assistant"}, {"content", text.content()}};
      if (text.content().empty() && !text.calls().empty()) message["content"] = nullptr;
      if (!text.reasoning().empty()) message["reasoning_content"] = text.reasoning();
      if (!text.calls().empty()) message["tool_calls"] = whole_calls(text.calls());
      out["message"] = std::move(message);
    } else {
      out["text"] = choice.echo + text.content();
    }
    out["logprobs"] = nullptr;
    if (style_.logprobs && style_.chat)
      out["logprobs"] = json::object{{"content", std::move(choice.chat_logprobs)}};
    else if (style_.logprobs)
      out["logprobs"] = choice.logprobs.take();
    out["finish_reason"] = to_string(ending);
  }

  void end(const Usage& usage, ClientStream& client) override {
    json::object out = head(style_.chat ? "chat.completion" : "text_completion");
    json::array choices;
    for (auto& [index, choice] : choices_) choices.push_back(std::move(choice.json));
    out["choices"] = std::move(choices);
    out["usage"] = openai_usage(usage);
    if (!style_.warnings.empty()) out["warnings"] = json::value_from(style_.warnings);
    client.respond(json_response(out));
  }

  void fail(const Refusal& refusal, ClientStream& client) override {
    client.fail(openai_error(refusal));
  }

 private:
  struct Choice {
    std::string echo;
    json::array chat_logprobs;
    CompletionLogprobs logprobs;
    json::object json;
  };
  std::map<std::int32_t, Choice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> openai_writer(const ServedModel& model, OpenAiStyle style) {
  if (style.stream) return std::make_unique<StreamWriter>(model, std::move(style));
  return std::make_unique<WholeWriter>(model, std::move(style));
}

http::HttpResponse openai_error(const Refusal& refusal) {
  json::object error = refusal.details;
  error["message"] = replace_invalid_utf8(refusal.message);
  error["type"] = refusal.type;
  error["param"] = refusal.field.empty() ? json::value(nullptr) : json::value(refusal.field);
  error["code"] = refusal.code.empty() ? json::value(nullptr) : json::value(refusal.code);
  http::HttpResponse response =
      json_response(json::object{{"error", std::move(error)}}, refusal.http_status);
  add_retry_hints(refusal, response);
  return response;
}

json::object openai_usage(const Usage& usage) {
  json::object details{{"cached_tokens", usage.cached_tokens}};
  if (usage.first_difference >= 0) details["first_difference"] = usage.first_difference;
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", std::move(details)}};
}

}  // namespace strata::serve
