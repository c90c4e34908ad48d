// The way of answers from the engine's thread to clients: a thread of its own turns tokens into
// text and text into what a protocol sends, so that the engine never waits for either.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "serve/http/exchange.h"
#include "serve/metrics.h"
#include "serve/refusal.h"
#include "text/answer.h"

namespace strata::serve {

enum class Ending : std::uint8_t {
  kStop,       // the model, or a stop string, ended the answer
  kLength,     // it has as many tokens as it may have
  kToolCalls,  // it ends in calls of tools, all of which are complete
};

struct Usage {
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;      // of the prompt
  std::int32_t completion_tokens = 0;  // of all choices
  Position first_difference = -1;      // as PromptStart has it
  double queued_seconds = 0;
  double prompt_seconds = 0;      // from its start to the first token
  double generation_seconds = 0;  // from the first token to the last
  double total_seconds = 0;       // from the request to the end
};

// What one token of an answer brought.
struct TokenEvent {
  TokenId token = 0;
  AnswerDelta delta;
  std::vector<LogProbability> logprobs;  // see ChosenToken
};
// The log-probability of a prompt's token, and the alternatives.
struct PromptToken {
  TokenId token = 0;
  std::vector<LogProbability> logprobs;  // empty for the first token, which nothing predicts
};

// Where a protocol writes to. For streams, chunks are collected and sent once per step.
class ClientStream {
 public:
  ClientStream(std::shared_ptr<http::Exchange> exchange, http::EventBatch& batch)
      : exchange_(std::move(exchange)), batch_(batch) {}
  void write(std::string_view chunk) { batch_.append(*exchange_, chunk); }
  void finish() { batch_.finish(*exchange_); }
  void respond(http::HttpResponse response) { exchange_->respond(std::move(response)); }
  // Ends the answer, also a stream, with an error.
  void fail(http::HttpResponse error) {
    batch_.flush();
    exchange_->respond(std::move(error));
  }

 private:
  std::shared_ptr<http::Exchange> exchange_;
  http::EventBatch& batch_;
};

// A protocol's form of one answer. Called on the delivery's thread, in this order: any number of
// prompt(), token() and end_choice() calls, then end() or, at any time instead, fail(). A choice's
// prompt() comes before its tokens, if at all.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual void prompt(std::int32_t /*choice*/, const std::vector<PromptToken>& /*tokens*/,
                      ClientStream& /*client*/) {}
  virtual void token(std::int32_t choice, const TokenEvent& event, ClientStream& client) = 0;
  // `rest`: what was held back until the end.
  virtual void end_choice(std::int32_t choice, Ending ending, const AnswerDelta& rest,
                          const AnswerText& text, ClientStream& client) = 0;
  virtual void end(const Usage& usage, ClientStream& client) = 0;
  virtual void fail(const Refusal& refusal, ClientStream& client) = 0;
};

struct AnswerSetup {
  std::shared_ptr<void> lease;  // keeps the model
  Engine* engine = nullptr;
  const Tokenizer* tokenizer = nullptr;
  AnswerOptions text;
  std::vector<TokenId> prompt;  // where prompt() is wanted, else empty
  std::int32_t prompt_tokens = 0;
  std::int32_t prompt_top = 0;  // alternatives to report with the prompt's tokens
  std::int32_t choices = 1;
  std::shared_ptr<http::Exchange> exchange;
  std::optional<http::StreamStart> stream;  // how it opens; nothing: one response
  std::unique_ptr<AnswerWriter> writer;
  Metrics* metrics = nullptr;
  std::chrono::steady_clock::time_point arrival;
};

struct AnswerPart {
  Request request;
  AnswerSetup setup;
};

// What /slots shows of a request.
struct SlotInfo {
  RequestId id;
  std::string
      state;  // queued, prompt, generating; or at its end done, failed, left (by its client)
  bool over = false;
  std::int32_t prompt_tokens = 0, prompt_computed = 0, cached_tokens = 0, completion_tokens = 0;
  Position first_difference = -1;
  double age_seconds = 0;
};

class AnswerStream;

class Delivery {
 public:
  Delivery();
  ~Delivery();  // REQUIRES: the engine is gone
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // Gives the requests of one client to the engine, and their answers to the setups' writers. A
  // client that goes cancels them. Where the engine refuses the first, no writer is called; where
  // it refuses another, the first's fail() is, and all are cancelled.
  std::optional<Refusal> submit(std::vector<AnswerPart> parts);

  // The requests under way, and the last 16 that ended.
  std::vector<SlotInfo> slots();

  // For EngineOptions.
  void after_step();

 private:
  struct Event;
  class EngineSink;

  void push(Event event, bool wake);
  void remember(const std::shared_ptr<AnswerStream>& stream);
  void forget_old();  // REQUIRES: mutex_ is held
  void loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Event> inbox_;
  std::deque<std::shared_ptr<AnswerStream>> streams_;  // the newest last
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace strata::serve
