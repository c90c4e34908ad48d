#include "serve/answer_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace strata::serve {
namespace {

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

const char* name_of(RequestEnd end) {
  switch (end) {
    case RequestEnd::kFailed: return "failed";
    case RequestEnd::kDisconnected: return "left";
    case RequestEnd::kStop:
    case RequestEnd::kLength: break;
  }
  return "done";
}

// A repetition would cost a whole answer, for nobody who asked for it.
Refusal broken_call(const Status& error) {
  Refusal refusal(500, "tool_call_error", error.message());
  refusal.repeatable = false;
  return refusal;
}

}  // namespace

AnswerStream::AnswerStream(AnswerSetup setup)
    : setup_(std::move(setup)), unfinished_(static_cast<std::size_t>(setup_.choices)) {
  std::random_device random;
  for (std::int32_t i = 0; i < setup_.choices; ++i) {
    // Conversations bring calls of several answers back, which must differ.
    setup_.text.call_id_prefix = fmt::format("call_{:08x}{:08x}_", random(), random());
    choices_.push_back({.text = AnswerText(*setup_.tokenizer, setup_.text)});
  }
  for (const TokenId token : setup_.prompt) prompt_.push_back({token, {}});
  usage_.prompt_tokens = setup_.prompt_tokens;
  start_ = first_token_ = last_token_ = setup_.arrival;
}

void AnswerStream::started(RequestId id) {
  const std::lock_guard lock(mutex_);
  id_ = id;
  if (cancelled_) return setup_.engine->cancel(id);
  for (const std::int32_t choice : unwanted_) setup_.engine->cancel(id, choice);
}

void AnswerStream::cancel() {
  const std::lock_guard lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  if (id_) setup_.engine->cancel(*id_);
}

void AnswerStream::cancel_choice(std::int32_t index) {
  const std::lock_guard lock(mutex_);
  if (!id_)
    unwanted_.push_back(index);
  else if (!cancelled_)
    setup_.engine->cancel(*id_, index);
}

SlotInfo AnswerStream::slot() const {
  SlotInfo info;
  {
    const std::lock_guard lock(mutex_);
    if (id_) info.id = *id_;
  }
  info.prompt_tokens = setup_.prompt_tokens;
  info.prompt_computed = std::max(computed_.load(), cached_.load());
  info.cached_tokens = cached_.load();
  info.completion_tokens = made_.load();
  info.first_difference = difference_.load();
  info.age_seconds = seconds_between(setup_.arrival, Clock::now());
  const char* const end = end_.load();
  info.over = end != nullptr;
  info.state = info.over                    ? end
               : info.completion_tokens > 0 ? "generating"
               : info.prompt_computed > 0   ? "prompt"
                                            : "queued";
  return info;
}

std::vector<LogProbability> AnswerStream::report(Position position,
                                                 std::span<const float> logits) const {
  const auto next = static_cast<std::size_t>(position) + 1;
  if (next >= setup_.prompt.size()) return {};
  return log_probabilities(logits, setup_.prompt[next], setup_.prompt_top);
}

void AnswerStream::open() {
  if (opened_) return;
  opened_ = true;
  if (setup_.stream) setup_.exchange->start_stream(std::move(*setup_.stream));
}

void AnswerStream::on_start(const PromptStart& start, Clock::time_point time) {
  start_ = time;
  usage_.cached_tokens = start.cached;
  usage_.first_difference = start.first_difference;
  cached_.store(start.cached);
  difference_.store(start.first_difference);
  usage_.queued_seconds = start.queued_seconds;
  setup_.metrics->prompt_started(seconds_between(setup_.arrival, time), usage_.prompt_tokens,
                                 start.cached);
}

void AnswerStream::on_prompt_logprobs(std::vector<LogProbability> logprobs) {
  // The first token has none.
  if (++reported_ < prompt_.size()) prompt_[reported_].logprobs = std::move(logprobs);
}

void AnswerStream::begin(ClientStream& client) {
  if (begun_) return;
  begun_ = true;
  if (prompt_.empty()) return;
  for (std::int32_t i = 0; i < setup_.choices; ++i) setup_.writer->prompt(i, prompt_, client);
}

void AnswerStream::on_token(std::int32_t index, TokenId token, std::vector<LogProbability> logprobs,
                            Clock::time_point time, http::EventBatch& batch) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  if (over_ || choice.ended) return;
  // Also where another part of the answer has failed.
  if (setup_.exchange->closed()) return cancel();
  if (usage_.completion_tokens == 0) {
    first_token_ = time;
    usage_.prompt_seconds = seconds_between(start_, time);
  }
  if (choice.tokens++ == 0)
    setup_.metrics->first_token(seconds_between(setup_.arrival, time));
  else
    setup_.metrics->next_token(seconds_between(choice.last_token, time));
  last_token_ = choice.last_token = time;
  made_.store(++usage_.completion_tokens);
  ClientStream client(setup_.exchange, batch);
  begin(client);
  TokenEvent event{token, choice.text.push(token), std::move(logprobs)};
  if (!event.delta.error.ok()) {
    fail(broken_call(event.delta.error), client);
    return cancel();
  }
  setup_.writer->token(index, event, client);
  if (!choice.text.stopped()) return;
  end_choice(index, FinishReason::kStop, client);
  if (std::ranges::all_of(choices_, &Choice::ended))
    cancel();
  else
    cancel_choice(index);
  end_if_all(time, client);
}

void AnswerStream::on_finish(std::int32_t index, FinishReason reason, const Status& status,
                             Clock::time_point time, http::EventBatch& batch) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  choice.finished = true;
  --unfinished_;
  ClientStream client(setup_.exchange, batch);
  if (!over_ && !choice.ended) {
    if (reason == FinishReason::kCancelled) {
      fail(Refusal(503, "overloaded_error", "the server ended this request"), client);
    } else if (reason == FinishReason::kError) {
      fail(Refusal(status), client);
    } else {
      begin(client);
      end_choice(index, reason, client);
      end_if_all(time, client);
    }
  }
  if (unfinished_ > 0) return;
  {
    // A client may go later than the model that answered it.
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  // A Delivery keeps it for slot(), which needs no more.
  choices_ = std::vector<Choice>();
  prompt_ = std::vector<PromptToken>();
  setup_.prompt = std::vector<TokenId>();
  setup_.text = {};
  setup_.lease.reset();
}

void AnswerStream::refuse(const Status& status, http::EventBatch& batch) {
  ClientStream client(setup_.exchange, batch);
  if (!over_) close(RequestEnd::kFailed);
  setup_.writer->fail(Refusal(status), client);
}

void AnswerStream::end_choice(std::int32_t index, FinishReason reason, ClientStream& client) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  const bool complete = reason == FinishReason::kStop && !choice.text.stopped();
  const AnswerDelta rest =
      choice.text.finish(complete ? Detokenizer::End::kComplete : Detokenizer::End::kCut);
  if (!rest.error.ok()) {
    fail(broken_call(rest.error), client);
    return cancel();
  }
  choice.ended = true;
  count(choice, reason == FinishReason::kStop ? RequestEnd::kStop : RequestEnd::kLength);
  Ending ending = reason == FinishReason::kStop ? Ending::kStop : Ending::kLength;
  // Clients run calls where that is the reason, so none may be cut.
  const std::vector<ToolCall>& calls = choice.text.calls();
  if (ending == Ending::kStop && !calls.empty() && calls.back().complete)
    ending = Ending::kToolCalls;
  setup_.writer->end_choice(index, ending, rest, choice.text, client);
}

void AnswerStream::end_if_all(Clock::time_point time, ClientStream& client) {
  if (over_ || !std::ranges::all_of(choices_, &Choice::ended)) return;
  usage_.generation_seconds = seconds_between(first_token_, last_token_);
  usage_.total_seconds = seconds_between(setup_.arrival, time);
  close(RequestEnd::kStop);
  setup_.writer->end(usage_, client);
}

void AnswerStream::fail(const Refusal& refusal, ClientStream& client) {
  if (over_) return;
  close(setup_.exchange->lost() ? RequestEnd::kDisconnected : RequestEnd::kFailed);
  setup_.writer->fail(refusal, client);
}

void AnswerStream::count(const Choice& choice, RequestEnd end) {
  setup_.metrics->request_ended(end, seconds_between(setup_.arrival, Clock::now()), choice.tokens);
}

// Before the writer has the last word: a client that has it may ask for the counts.
void AnswerStream::close(RequestEnd end) {
  over_ = true;
  end_.store(name_of(end));
  for (const Choice& choice : choices_)
    if (!choice.ended) count(choice, end);
}

}  // namespace strata::serve
