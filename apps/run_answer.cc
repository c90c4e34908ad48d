#include "run_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "progress.h"

namespace strata::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kInterruptInterval{50};

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

struct Event {
  enum class Kind { kPrompt, kToken, kFinish };
  Kind kind;
  std::int32_t choice = 0;
  TokenId token = 0;
  std::int32_t computed = 0, total = 0;
  FinishReason reason = FinishReason::kStop;
  Status status;
  Clock::time_point time = Clock::now();
};

// From the engine's thread to the one that prints.
class EventQueue final : public Sink {
 public:
  void on_prompt(std::int32_t computed, std::int32_t total) override {
    push({.kind = Event::Kind::kPrompt, .computed = computed, .total = total, .status = {}});
  }
  void on_token(std::int32_t choice, const ChosenToken& token) override {
    push({.kind = Event::Kind::kToken, .choice = choice, .token = token.id, .status = {}});
  }
  void on_finish(std::int32_t choice, FinishReason reason, const Status& status) override {
    push({.kind = Event::Kind::kFinish, .choice = choice, .reason = reason, .status = status});
  }

  // nullopt when nothing came within `limit`.
  std::optional<Event> pop(Clock::duration limit) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, limit, [&] { return !events_.empty(); })) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  void push(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    arrived_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
};

// What follow() knows while a request runs.
class Follower {
 public:
  Follower(std::span<AnswerText> texts, Printer& printer, Timing& timing)
      : texts_(texts), printer_(printer), timing_(timing), open_(texts.size()) {}

  bool done() const { return open_ == 0; }
  // Whether nothing that may still come is wanted.
  bool satisfied() const {
    return !status_.ok() || std::ranges::all_of(texts_, &AnswerText::stopped);
  }
  const Status& status() const { return status_; }
  FinishReason reason() const { return reason_; }

  void take(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kPrompt:
        progress_.update(static_cast<std::uint64_t>(event.computed),
                         static_cast<std::uint64_t>(event.total));
        break;
      case Event::Kind::kToken: take_token(event); break;
      case Event::Kind::kFinish:
        --open_;
        if (timing_.generated == 0) timing_.prompt_seconds = seconds_between(start_, event.time);
        reason_ = event.reason;
        fail(event.status);
        progress_.clear();
        break;
    }
  }

 private:
  void take_token(const Event& event) {
    progress_.clear();
    if (timing_.generated == 0)
      timing_.prompt_seconds = seconds_between(start_, event.time);
    else
      ++timing_.timed;
    ++timing_.generated;
    timing_.generation_seconds = seconds_between(start_, event.time) - timing_.prompt_seconds;
    AnswerText& text = texts_[static_cast<std::size_t>(event.choice)];
    if (text.stopped()) return;
    const AnswerDelta piece = text.push(event.token);
    if (event.choice != 0 || !status_.ok()) return;
    fail(printer_.reasoning(piece.reasoning));
    fail(printer_.content(piece.content));
  }

  void fail(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  std::span<AnswerText> texts_;
  Printer& printer_;
  Timing& timing_;
  Clock::time_point start_ = Clock::now();
  Progress progress_{"reading the prompt", std::chrono::milliseconds(500)};
  std::size_t open_;
  FinishReason reason_ = FinishReason::kStop;
  Status status_;
};

}  // namespace

Timing& Timing::operator+=(const Timing& other) {
  prompt_tokens += other.prompt_tokens;
  generated += other.generated;
  timed += other.timed;
  prompt_seconds += other.prompt_seconds;
  generation_seconds += other.generation_seconds;
  return *this;
}

std::string describe(const Timing& timing) {
  const auto count = [](std::int64_t tokens) {
    return fmt::format("{} token{}", tokens, tokens == 1 ? "" : "s");
  };
  const auto speed = [](std::int64_t tokens, double seconds) {
    std::string out = fmt::format(" in {:.3f} s", seconds);
    if (seconds > 0) out += fmt::format(", {:.2f} tokens/s", static_cast<double>(tokens) / seconds);
    return out;
  };
  std::string out = fmt::format("{:<12} {}{}\n{:<12} {}", "prompt", count(timing.prompt_tokens),
                                speed(timing.prompt_tokens, timing.prompt_seconds), "generation",
                                count(timing.generated));
  if (timing.timed > 0)
    out += fmt::format(", {} behind the first{}", timing.timed,
                       speed(timing.timed, timing.generation_seconds));
  return out + "\n";
}

Result<Ending> follow(Engine& engine, Request request, std::span<AnswerText> texts,
                      Printer& printer, Interrupts& interrupts, Timing& timing) {
  Timing part;
  part.prompt_tokens = static_cast<std::int64_t>(request.tokens.size());
  request.choices = static_cast<std::int32_t>(texts.size());
  const auto queue = std::make_shared<EventQueue>();
  Follower follower(texts, printer, part);
  STRATA_ASSIGN(const RequestId id, engine.submit(std::move(request), queue));
  Ending ending;
  bool cancelled = false;
  while (!follower.done()) {
    if (auto event = queue->pop(kInterruptInterval)) follower.take(*event);
    ending.interrupted = interrupts.pressed();
    if (cancelled || !(ending.interrupted || follower.satisfied())) continue;
    engine.cancel(id);
    cancelled = true;
  }
  timing += part;
  if (!follower.status().ok()) return follower.status();
  const bool stopped = std::ranges::all_of(texts, &AnswerText::stopped);
  ending.reason = stopped ? FinishReason::kStop : follower.reason();
  return ending;
}

}  // namespace strata::apps
