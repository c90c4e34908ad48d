// One request's answer on its way, inside a Delivery.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "serve/delivery.h"

namespace strata::serve {

using Clock = std::chrono::steady_clock;

// on_...: the delivery's thread, in the order in which the engine called.
class AnswerStream {
 public:
  explicit AnswerStream(AnswerSetup setup);

  // Any thread. A cancel() that comes before started() waits for it.
  void started(RequestId id);
  void cancel();
  SlotInfo slot() const;
  bool is_over() const { return end_.load() != nullptr; }

  // The engine's thread.
  void on_prompt(std::int32_t computed) { computed_.store(computed); }

  // Of the prompt's token behind `position`: for the engine's thread. Empty where none is wanted.
  std::vector<LogProbability> report(Position position, std::span<const float> logits) const;

  void open();  // before everything else, if only once
  void on_start(const PromptStart& start, Clock::time_point time);
  void on_prompt_logprobs(std::vector<LogProbability> logprobs);
  void on_token(std::int32_t choice, TokenId token, std::vector<LogProbability> logprobs,
                Clock::time_point time, http::EventBatch& batch);
  void on_finish(std::int32_t choice, FinishReason reason, const Status& status,
                 Clock::time_point time, http::EventBatch& batch);
  // Ends the answer of which this is a part.
  void refuse(const Status& status, http::EventBatch& batch);

 private:
  struct Choice {
    AnswerText text;
    std::int32_t tokens = 0;
    Clock::time_point last_token = {};
    bool ended = false;     // for the client
    bool finished = false;  // for the engine
  };

  void cancel_choice(std::int32_t index);
  void begin(ClientStream& client);
  void end_choice(std::int32_t index, FinishReason reason, ClientStream& client);
  void end_if_all(Clock::time_point time, ClientStream& client);
  void fail(const Refusal& refusal, ClientStream& client);
  void count(const Choice& choice, RequestEnd end);
  void close(RequestEnd end);

  AnswerSetup setup_;
  std::vector<Choice> choices_;
  std::vector<PromptToken> prompt_;
  std::size_t reported_ = 0;  // of these, with log-probabilities
  Usage usage_;
  bool opened_ = false;
  bool begun_ = false;
  bool over_ = false;  // the writer hears no more
  std::size_t unfinished_;
  Clock::time_point start_, first_token_, last_token_;

  // For slot().
  std::atomic<const char*> end_{nullptr};  // what became of it, for slot(); null: it goes on
  std::atomic<std::int32_t> computed_{0}, cached_{0}, made_{0}, difference_{-1};

  mutable std::mutex mutex_;
  std::optional<RequestId> id_;
  bool cancelled_ = false;
  std::vector<std::int32_t> unwanted_;  // choices that ended before started()
};

}  // namespace strata::serve
