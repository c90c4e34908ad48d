#include "serve/delivery.h"

#include <algorithm>

#include "serve/answer_stream.h"

namespace strata::serve {
namespace {

void cancel_all(const std::vector<std::shared_ptr<AnswerStream>>& streams) {
  for (const auto& stream : streams) stream->cancel();
}

}  // namespace

struct Delivery::Event {
  enum class Kind : std::uint8_t { kTaken, kStart, kPromptToken, kToken, kFinish, kRefused };
  std::shared_ptr<AnswerStream> stream;
  Kind kind = Kind::kToken;
  std::int32_t choice = 0;
  TokenId token = 0;
  FinishReason reason = FinishReason::kStop;
  Clock::time_point time = Clock::now();
  std::vector<LogProbability> logprobs = {};
  PromptStart start = {};
  Status status = {};  // of kFinish and kRefused
};

// Everything here runs on the engine's thread.
class Delivery::EngineSink final : public Sink {
 public:
  EngineSink(Delivery& delivery, std::shared_ptr<AnswerStream> stream)
      : delivery_(delivery), stream_(std::move(stream)) {}

  void on_start(const PromptStart& start) override {
    delivery_.push({.stream = stream_, .kind = Event::Kind::kStart, .start = start}, false);
  }
  void on_prompt(std::int32_t computed, std::int32_t) override { stream_->on_prompt(computed); }
  void on_logits(Position position, std::span<const float> logits) override {
    auto report = stream_->report(position, logits);
    if (report.empty()) return;
    delivery_.push(
        {.stream = stream_, .kind = Event::Kind::kPromptToken, .logprobs = std::move(report)},
        false);
  }
  void on_token(std::int32_t choice, const ChosenToken& token) override {
    delivery_.push({.stream = stream_,
                    .choice = choice,
                    .token = token.id,
                    .logprobs = {token.logprobs.begin(), token.logprobs.end()}},
                   false);
  }
  void on_finish(std::int32_t choice, FinishReason reason, const Status& status) override {
    delivery_.push({.stream = stream_,
                    .kind = Event::Kind::kFinish,
                    .choice = choice,
                    .reason = reason,
                    .status = status},
                   true);
  }

 private:
  Delivery& delivery_;
  const std::shared_ptr<AnswerStream> stream_;
};

Delivery::Delivery() : thread_([this] { loop(); }) {}

Delivery::~Delivery() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::optional<Refusal> Delivery::submit(std::vector<AnswerPart> parts) {
  const std::shared_ptr<http::Exchange> exchange = parts.front().setup.exchange;
  std::vector<std::shared_ptr<AnswerStream>> streams;
  for (AnswerPart& part : parts) {
    Engine& engine = *part.setup.engine;
    const auto stream = std::make_shared<AnswerStream>(std::move(part.setup));
    auto id = engine.submit(std::move(part.request), std::make_shared<EngineSink>(*this, stream));
    if (!id.ok()) {
      if (streams.empty()) return Refusal(id.status());
      // The rest of the request counts too.
      for (std::size_t i = streams.size(); i < parts.size(); ++i)
        parts[i].setup.metrics->requests_refused(parts[i].setup.choices);
      // First, so that the client hears this reason and not that its request was cancelled.
      push({.stream = streams.front(), .kind = Event::Kind::kRefused, .status = id.status()}, true);
      cancel_all(streams);
      return std::nullopt;
    }
    stream->started(*id);
    remember(stream);
    streams.push_back(stream);
    push({.stream = stream, .kind = Event::Kind::kTaken}, true);
  }
  exchange->on_disconnect([streams] { cancel_all(streams); });
  return std::nullopt;
}

void Delivery::remember(const std::shared_ptr<AnswerStream>& stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  forget_old();
}

// Of streams that are over the last few stay.
void Delivery::forget_old() {
  constexpr std::size_t kKept = 16;
  std::size_t over = static_cast<std::size_t>(
      std::ranges::count_if(streams_, [](const auto& each) { return each->is_over(); }));
  std::erase_if(streams_, [&](const auto& each) {
    if (over <= kKept || !each->is_over()) return false;
    --over;
    return true;
  });
}

std::vector<SlotInfo> Delivery::slots() {
  std::deque<std::shared_ptr<AnswerStream>> streams;
  {
    const std::lock_guard lock(mutex_);
    forget_old();
    streams = streams_;
  }
  std::vector<SlotInfo> out;
  for (const auto& stream : streams) out.push_back(stream->slot());
  return out;
}

void Delivery::after_step() { wake_.notify_one(); }

void Delivery::push(Event event, bool wake) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(event));
  }
  if (wake) wake_.notify_one();
}

void Delivery::loop() {
  http::EventBatch batch;
  std::vector<Event> events;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || !inbox_.empty(); });
      if (inbox_.empty()) return;
      events.swap(inbox_);
    }
    for (Event& event : events) {
      AnswerStream& stream = *event.stream;
      stream.open();
      switch (event.kind) {
        case Event::Kind::kTaken: break;
        case Event::Kind::kRefused: stream.refuse(event.status, batch); break;
        case Event::Kind::kStart: stream.on_start(event.start, event.time); break;
        case Event::Kind::kPromptToken: stream.on_prompt_logprobs(std::move(event.logprobs)); break;
        case Event::Kind::kToken:
          stream.on_token(event.choice, event.token, std::move(event.logprobs), event.time, batch);
          break;
        case Event::Kind::kFinish:
          stream.on_finish(event.choice, event.reason, event.status, event.time, batch);
          break;
      }
    }
    events.clear();
    batch.flush();
  }
}

}  // namespace strata::serve
