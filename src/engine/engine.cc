#include "engine/engine.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/memory_ledger.h"
#include "engine/model.h"
#include "execute/executor.h"
#include "probe/machine.h"
#include "schedule/scheduler.h"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One answer of a request: one sequence of the scheduler.
struct Choice {
  RequestId request;
  std::int32_t index = 0;
  std::int32_t generated = 0;
  SamplerState sampler;  // after its last token; preemption recomputes tokens but draws none again
};

struct ActiveRequest {
  Request request;
  std::shared_ptr<Sink> sink;
  std::int32_t open_choices = 0;
  bool forked = false;  // its further choices have been started
  std::vector<SequenceId> sequences;
};

// A choice's fate after a token was chosen for it.
struct Verdict {
  bool finished = false;
  FinishReason reason = FinishReason::kStop;
  Status status;
};

class EngineLoop final : public Engine {
 public:
  EngineLoop(std::unique_ptr<Model> model, Scheduler scheduler, EngineOutput output)
      : model_(std::move(model)), output_(output), scheduler_(std::move(scheduler)) {
    thread_ = std::thread([this] { loop(); });
  }
  ~EngineLoop() override;

  Result<RequestId> submit(Request request, std::shared_ptr<Sink> sink) override;
  void cancel(RequestId id) override;
  EngineStats stats() const override;

  const ModelManifest& manifest() const override { return model_->manifest; }
  const PlacementPlan& plan() const override { return model_->plan; }
  const std::string& device_name() const override { return model_->device_name; }
  std::int32_t vocabulary() const override { return model_->graph.vocabulary; }
  bool causal() const override { return model_->graph.causal; }
  std::map<std::string, Bytes> memory_by_owner() const override {
    return model_->ledger->by_owner();
  }

 private:
  struct Submission {
    RequestId id;
    Request request;
    std::shared_ptr<Sink> sink;
  };

  // A token and what its sequence's next draw needs to know.
  struct Drawn {
    TokenId token = 0;
    SamplerState sampler;
  };

  // What the loop decided for one slice of a step.
  struct Outcome {
    SequenceId sequence;
    Position keep = 0;
    std::vector<TokenId> appended;
    bool computed_all = false;  // nothing pending is left
    Verdict verdict;
    std::vector<Drawn> siblings;  // first of the request's further choices
  };

  Status check(const Request& request) const;
  void loop();
  bool wait_for_work();
  void drain_inbox();
  void start(Submission submission);
  void cancel_now(RequestId id);
  void step(const StepPlan& plan);
  Outcome settle(const SequenceSlice& slice, const LogitRows& rows, std::int32_t& next_row);
  void choose(const SequenceSlice& slice, std::span<const float> logits, Outcome& outcome);
  void apply(const std::vector<Outcome>& outcomes);
  void fork_siblings(const Outcome& outcome);
  Verdict judge(const ActiveRequest& request, Choice& choice, TokenId token, Position length) const;
  void fail_step(const StepPlan& plan, const Status& status);
  void finish(SequenceId sequence, const Verdict& verdict);
  void publish_stats();

  std::unique_ptr<Model> model_;
  const EngineOutput output_;

  // The loop's own.
  Scheduler scheduler_;
  Sampler sampler_;
  std::unordered_map<RequestId, ActiveRequest> requests_;
  std::unordered_map<SequenceId, Choice> choices_;
  std::int64_t next_sequence_ = 0;
  EngineStats counters_;

  // Shared with the callers.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Submission> inbox_;
  std::vector<RequestId> cancels_;
  EngineStats published_;
  std::int64_t next_request_ = 0;
  bool stop_ = false;

  std::thread thread_;
};

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Status EngineLoop::check(const Request& request) const {
  const auto length = static_cast<std::int64_t>(request.tokens.size());
  if (length == 0) return invalid_argument("the prompt is empty");
  if (output_ != EngineOutput::kLogits && request.max_tokens != 0)
    return invalid_argument("the model was not loaded for answers: max_tokens must be 0, not {}",
                            request.max_tokens);
  // One position must be left for an answer, unless none is wanted.
  const std::int64_t room = context() - (request.max_tokens == 0 ? 0 : 1);
  if (length > room)
    return invalid_argument("the prompt has {} tokens but the context holds {}{}", length,
                            context(), request.max_tokens == 0 ? "" : ", one of them to answer");
  for (const TokenId token : request.tokens)
    if (token < 0 || token >= vocabulary())
      return invalid_argument("token {} is outside the vocabulary of {}", token, vocabulary());
  Position previous = -1;
  for (const Position position : request.logit_positions) {
    if (position <= previous || position >= length)
      return invalid_argument("logit position {} is not within the prompt's {} in ascending order",
                              position, length);
    previous = position;
  }
  if (request.choices < 1 || request.choices > 1024)
    return invalid_argument("{} choices asked for; 1 to 1024 are possible", request.choices);
  if (request.top_logprobs < -1 || request.top_logprobs > 20)
    return invalid_argument("{} top_logprobs asked for; 0 to 20 are possible",
                            request.top_logprobs);
  if (request.top_logprobs >= 0) return unsupported("top_logprobs are not supported");
  if (request.constraint) return unsupported("constraints are not supported");
  return request.sampling.validate(vocabulary());
}

Result<RequestId> EngineLoop::submit(Request request, std::shared_ptr<Sink> sink) {
  STRATA_TRY(check(request));
  const std::lock_guard lock(mutex_);
  const RequestId id{next_request_++};
  inbox_.push_back({id, std::move(request), std::move(sink)});
  wake_.notify_all();
  return id;
}

void EngineLoop::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  cancels_.push_back(id);
  wake_.notify_all();
}

EngineStats EngineLoop::stats() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

// The loop: drain, plan, compute, choose, commit.
void EngineLoop::loop() {
  while (wait_for_work()) {
    drain_inbox();
    const auto start = Clock::now();
    const StepPlan& plan = scheduler_.plan_step();
    counters_.plan_seconds += seconds_since(start);
    for (const Ended& ended : scheduler_.take_ended())
      finish(ended.sequence, {true, FinishReason::kError, ended.status});
    if (!plan.empty()) step(plan);
    publish_stats();
  }
  drain_inbox();
  while (!requests_.empty()) cancel_now(requests_.begin()->first);
}

bool EngineLoop::wait_for_work() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock,
             [&] { return stop_ || !inbox_.empty() || !cancels_.empty() || !requests_.empty(); });
  return !stop_;
}

void EngineLoop::drain_inbox() {
  std::vector<Submission> submissions;
  std::vector<RequestId> cancels;
  {
    const std::lock_guard lock(mutex_);
    submissions.swap(inbox_);
    cancels.swap(cancels_);
  }
  for (Submission& submission : submissions) start(std::move(submission));
  for (const RequestId id : cancels) cancel_now(id);
}

void EngineLoop::start(Submission submission) {
  const SequenceId sequence{next_sequence_++};
  Request& request = submission.request;
  const Status status = scheduler_.add(
      {sequence, request.tokens, request.logit_positions, request.max_tokens != 0, 0});
  ActiveRequest active{std::move(request), std::move(submission.sink), 1, false, {sequence}};
  requests_.emplace(submission.id, std::move(active));
  choices_.emplace(sequence, Choice{submission.id, 0, 0, {}});
  if (!status.ok()) finish(sequence, {true, FinishReason::kError, status});
}

void EngineLoop::cancel_now(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  const std::vector<SequenceId> sequences = found->second.sequences;
  for (const SequenceId sequence : sequences) {
    if (!choices_.contains(sequence)) continue;
    // A sequence that is being torn down for an error is no longer the scheduler's.
    if (scheduler_.find(sequence) != nullptr) (void)scheduler_.cancel(sequence);
    finish(sequence, {true, FinishReason::kCancelled, {}});
  }
}

void EngineLoop::step(const StepPlan& plan) {
  const auto start = Clock::now();
  const auto rows = model_->executor->run(plan);
  counters_.compute_seconds += seconds_since(start);
  if (!rows.ok()) return fail_step(plan, rows.status());
  ++counters_.steps;
  counters_.rows += plan.rows;
  const auto sampling = Clock::now();
  std::vector<Outcome> outcomes;
  std::int32_t next_row = 0;
  for (const SequenceSlice& slice : plan.slices) outcomes.push_back(settle(slice, *rows, next_row));
  apply(outcomes);
  counters_.sample_seconds += seconds_since(sampling);
}

// Hands out a slice's logits and, where its last known token was computed, chooses the next.
EngineLoop::Outcome EngineLoop::settle(const SequenceSlice& slice, const LogitRows& rows,
                                       std::int32_t& next_row) {
  const Choice& choice = choices_.at(slice.sequence);
  ActiveRequest& active = requests_.at(choice.request);
  const auto prompt = static_cast<Position>(active.request.tokens.size());
  Outcome outcome;
  outcome.sequence = slice.sequence;
  outcome.keep = static_cast<Position>(slice.tokens.size());
  const Position end = slice.first + outcome.keep;
  const Position known = scheduler_.find(slice.sequence)->known();
  outcome.computed_all = end == known;
  if (slice.first < prompt) active.sink->on_prompt(std::min(end, prompt), prompt);
  for (std::size_t i = 0; i < slice.tokens.size(); ++i) {
    if (slice.wants_logits[i] == 0) continue;
    const auto logits = rows.row(next_row++);
    const Position position = slice.first + static_cast<Position>(i);
    const auto& wanted = active.request.logit_positions;
    if (std::binary_search(wanted.begin(), wanted.end(), position))
      active.sink->on_logits(position, logits);
    if (position + 1 == known && active.request.max_tokens != 0) choose(slice, logits, outcome);
  }
  if (outcome.computed_all && outcome.appended.empty() && !outcome.verdict.finished)
    outcome.verdict = {true, FinishReason::kLength, {}};
  return outcome;
}

void EngineLoop::choose(const SequenceSlice& slice, std::span<const float> logits,
                        Outcome& outcome) {
  Choice& choice = choices_.at(slice.sequence);
  ActiveRequest& active = requests_.at(choice.request);
  const std::vector<TokenId>& history = scheduler_.find(slice.sequence)->tokens;
  // The prompt's last logits start every choice of the request.
  std::vector<Drawn> drawn;
  const std::int32_t first = choice.index;
  const std::int32_t last = active.forked ? first : active.request.choices - 1;
  for (std::int32_t stream = first; stream <= last; ++stream) {
    Drawn next{0, choice.sampler};
    const auto token =
        sampler_.sample(logits, active.request.sampling, history,
                        {active.request.sampling.seed, static_cast<std::uint32_t>(stream),
                         static_cast<std::uint32_t>(history.size())},
                        next.sampler, {});
    if (!token.ok()) {
      outcome.verdict = {true, FinishReason::kError, token.status()};
      return;
    }
    next.token = *token;
    drawn.push_back(next);
  }
  choice.sampler = drawn.front().sampler;
  outcome.appended = {drawn.front().token};
  outcome.siblings.assign(drawn.begin() + 1, drawn.end());
  active.forked = true;
  outcome.verdict =
      judge(active, choice, outcome.appended.front(), static_cast<Position>(history.size()) + 1);
}

// Reports a chosen token and says whether it is the choice's last. `length`: tokens known with it.
Verdict EngineLoop::judge(const ActiveRequest& active, Choice& choice, TokenId token,
                          Position length) const {
  const Request& request = active.request;
  if (std::ranges::find(request.stop_tokens, token) != request.stop_tokens.end())
    return {true, FinishReason::kStop, {}};
  active.sink->on_token(choice.index, {token, {}});
  ++choice.generated;
  if (request.max_tokens > 0 && choice.generated >= request.max_tokens)
    return {true, FinishReason::kLength, {}};
  if (length >= context()) return {true, FinishReason::kContext, {}};
  return {};
}

void EngineLoop::apply(const std::vector<Outcome>& outcomes) {
  std::vector<Confirmed> confirmed;
  for (const Outcome& o : outcomes) {
    counters_.generated += static_cast<std::int64_t>(o.appended.size() + o.siblings.size());
    // A parent stays until its siblings have forked from it.
    const bool finished = o.verdict.finished && o.siblings.empty();
    confirmed.push_back({o.sequence, o.keep,
                         finished ? std::span<const TokenId>() : std::span(o.appended), finished});
  }
  const Status status = scheduler_.commit(confirmed);
  for (const Outcome& o : outcomes) {
    if (!status.ok()) {
      finish(o.sequence, {true, FinishReason::kError, status});
      continue;
    }
    if (!o.siblings.empty()) {
      fork_siblings(o);
      if (o.verdict.finished) (void)scheduler_.cancel(o.sequence);
    }
    if (o.verdict.finished) finish(o.sequence, o.verdict);
  }
}

void EngineLoop::fork_siblings(const Outcome& outcome) {
  const RequestId id = choices_.at(outcome.sequence).request;
  ActiveRequest& active = requests_.at(id);
  const Position length = scheduler_.find(outcome.sequence)->known();
  active.open_choices += static_cast<std::int32_t>(outcome.siblings.size());
  for (std::size_t i = 0; i < outcome.siblings.size(); ++i) {
    const SequenceId child{next_sequence_++};
    const auto& [token, sampler] = outcome.siblings[i];
    const Choice started{id, static_cast<std::int32_t>(i) + 1, 0, sampler};
    Choice& choice = choices_.emplace(child, started).first->second;
    active.sequences.push_back(child);
    Verdict verdict = judge(active, choice, token, length);
    if (!verdict.finished) {
      const Status status = scheduler_.fork(outcome.sequence, child, token);
      if (!status.ok()) verdict = {true, FinishReason::kError, status};
    }
    if (verdict.finished) finish(child, verdict);
  }
}

// A device that failed a step has failed all of its sequences, and no others.
void EngineLoop::fail_step(const StepPlan& plan, const Status& status) {
  std::vector<SequenceId> sequences;
  for (const SequenceSlice& slice : plan.slices) sequences.push_back(slice.sequence);
  (void)scheduler_.commit({});
  for (const SequenceId sequence : sequences) {
    (void)scheduler_.cancel(sequence);
    finish(sequence, {true, FinishReason::kError, status});
  }
}

void EngineLoop::finish(SequenceId sequence, const Verdict& verdict) {
  const auto found = choices_.find(sequence);
  if (found == choices_.end()) return;
  const Choice choice = found->second;
  choices_.erase(found);
  ActiveRequest& active = requests_.at(choice.request);
  const std::shared_ptr<Sink> sink = active.sink;
  // Choices that were never started end with the one they would have forked from.
  const std::int32_t last = active.forked ? choice.index : active.request.choices - 1;
  if (--active.open_choices == 0) requests_.erase(choice.request);
  for (std::int32_t i = choice.index; i <= last; ++i)
    sink->on_finish(i, verdict.reason, verdict.status);
}

void EngineLoop::publish_stats() {
  const SchedulerStats scheduler = scheduler_.stats();
  counters_.preemptions = scheduler.preemptions;
  counters_.running = scheduler.running;
  counters_.waiting = scheduler.waiting;
  const std::lock_guard lock(mutex_);
  published_ = counters_;
}

}  // namespace

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kContext: return "context";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kError: return "error";
  }
  return "unknown";
}

Result<std::unique_ptr<Engine>> Engine::load(ModelManifest manifest, const EngineOptions& options,
                                             const LoadProgress& progress) {
  STRATA_ASSIGN(auto model, load_model(std::move(manifest), options, progress));
  const auto groups = model->executor->cache_groups();
  STRATA_ASSIGN(Scheduler scheduler, Scheduler::create({model->plan.step.rows,
                                                        model->plan.step.logit_rows,
                                                        options.running,
                                                        {groups.begin(), groups.end()},
                                                        !model->graph.causal}));
  return std::unique_ptr<Engine>(
      std::make_unique<EngineLoop>(std::move(model), std::move(scheduler), options.output));
}

Result<std::unique_ptr<Engine>> Engine::load(const std::string& path, const EngineOptions& options,
                                             const LoadProgress& progress) {
  STRATA_ASSIGN(ModelManifest manifest, ModelManifest::open(path));
  return load(std::move(manifest), options, progress);
}

}  // namespace strata
