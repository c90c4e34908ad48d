#include "chat_session.h"

#include <utility>

namespace strata::apps {
namespace {

namespace json = boost::json;

json::object message(std::string_view role, std::string_view content) {
  return json::object{{"role", role}, {"content", content}};
}

}  // namespace

Result<ChatSession::Turn> ChatSession::ask(std::string_view text) {
  const std::vector<Exchange> before = turns_;
  turns_.push_back({message("user", text)});
  auto turn = fit(0, 0);
  if (!turn.ok()) turns_ = before;
  return turn;
}

Result<ChatSession::Turn> ChatSession::make_room(std::int32_t produced) {
  if (!limits_.shift || turns_.size() < 2)
    return resource_exhausted("the context of {} tokens is full", limits_.context);
  turns_.erase(turns_.begin());
  return fit(produced, 1);
}

void ChatSession::answer(std::string_view reasoning, std::string_view content) {
  if (turns_.empty()) return;
  if (reasoning.empty() && content.empty()) return turns_.pop_back();
  json::object answer = message("assistant", content);
  if (!reasoning.empty()) answer["reasoning_content"] = reasoning;
  turns_.back().push_back(std::move(answer));
}

// The prompt of the conversation, without its oldest turns where they are too much.
Result<ChatSession::Turn> ChatSession::fit(std::int32_t produced, int dropped) {
  for (;; ++dropped) {
    STRATA_ASSIGN(Prompt prompt, render_(messages()));
    const auto taken = static_cast<std::int64_t>(prompt.tokens.size()) + produced;
    const bool may_drop = limits_.shift && turns_.size() > 1;
    if (taken + (may_drop ? limits_.reserve : 1) <= limits_.context)
      return Turn{std::move(prompt), dropped};
    if (may_drop) {
      turns_.erase(turns_.begin());
      continue;
    }
    if (turns_.size() == 1)
      return resource_exhausted("the prompt has {} tokens but the context holds {}", taken,
                                limits_.context);
    return resource_exhausted("the context is full: the conversation has {} tokens of {}", taken,
                              limits_.context);
  }
}

json::array ChatSession::messages() const {
  json::array out;
  if (!system_.empty()) out.push_back(message("system", system_));
  for (const Exchange& turn : turns_)
    for (const json::object& message : turn) out.push_back(message);
  return out;
}

}  // namespace strata::apps
