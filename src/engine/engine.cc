#include "engine/engine.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/memory_ledger.h"
#include "base/processor_time.h"
#include "engine/mask_pace.h"
#include "engine/model.h"
#include "engine/queue_room.h"
#include "engine/request_check.h"
#include "engine/step_pace.h"
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
  // After its last token; preemption recomputes tokens but draws none again.
  SamplerState sampler;
  std::unique_ptr<Constraint> constraint;
  MaskCost mask_cost = {};
};

struct ActiveRequest {
  Request request;
  std::shared_ptr<Sink> sink;
  Clock::time_point arrived;
  std::int32_t open_choices = 0;
  bool started = false;  // on_start was called
  bool forked = false;   // its further choices have been started
  std::vector<SequenceId> sequences;
};

bool is_stop(const Request& request, TokenId token) {
  return std::ranges::find(request.stop_tokens, token) != request.stop_tokens.end();
}

// A choice's fate after a token was chosen for it.
struct Verdict {
  bool finished = false;
  FinishReason reason = FinishReason::kStop;
  Status status;
};

class EngineLoop final : public Engine {
 public:
  EngineLoop(std::unique_ptr<Model> model, Scheduler scheduler, const EngineOptions& options)
      : model_(std::move(model)),
        options_(options),
        scheduler_(std::move(scheduler)),
        pace_(options.interactive_slowdown),
        queue_({static_cast<std::int64_t>(options.queue), options.queue_tokens}) {
    thread_ = std::thread([this] { loop(); });
  }
  ~EngineLoop() override;

  Result<RequestId> submit(Request request, std::shared_ptr<Sink> sink) override;
  void cancel(RequestId id) override { enqueue({id, std::nullopt}); }
  void cancel(RequestId id, std::int32_t choice) override { enqueue({id, choice}); }
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
    Clock::time_point arrived;
  };

  struct Cancellation {
    RequestId id;
    std::optional<std::int32_t> choice;  // nothing: all
  };

  // A token and what its sequence's next draw needs to know.
  struct Drawn {
    TokenId token = 0;
    SamplerState sampler;
    std::unique_ptr<Constraint> constraint;
    std::vector<LogProbability> logprobs;
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

  void loop();
  bool wait_for_work();
  bool drain_inbox();
  void start(Submission submission);
  void make_masks();
  const StepPlan& plan_step();
  void enqueue(Cancellation cancellation);
  void cancel_now(const Cancellation& cancellation);
  void step(const StepPlan& plan);
  void report_starts(const StepPlan& plan);
  Outcome settle(const SequenceSlice& slice, const LogitRows& rows, std::int32_t& next_row);
  void choose(const SequenceSlice& slice, std::span<const float> logits, Outcome& outcome);
  Result<Drawn> draw(const Request& request, Choice& choice, std::int32_t stream,
                     std::span<const float> logits, std::span<const TokenId> history);
  void apply(std::vector<Outcome>& outcomes);
  void fork_siblings(Outcome& outcome);
  Verdict judge(const ActiveRequest& request, Choice& choice, const Drawn& drawn, Position length);
  void fail_step(const StepPlan& plan, const Status& status);
  void finish(SequenceId sequence, const Verdict& verdict);
  void leave_queue(ActiveRequest& active);
  void publish_stats();

  // A call to a sink, timed.
  template <typename Call>
  void send(Call call) {
    const auto start = Clock::now();
    call();
    counters_.send_seconds += seconds_since(start);
  }

  std::unique_ptr<Model> model_;
  const EngineOptions options_;

  // The loop's own.
  Scheduler scheduler_;
  StepPace pace_;
  MaskPace masks_{[] { return seconds_since({}); }};
  std::vector<MaskPace::Late> late_;  // answers that run and lack a mask
  std::vector<SequenceId> held_;      // that sit the step out
  double step_seconds_ = 0;           // of the last step; 0: nothing was computed
  Sampler sampler_;
  std::unordered_map<RequestId, ActiveRequest> requests_;
  std::unordered_map<SequenceId, Choice> choices_;
  std::int64_t next_sequence_ = 0;
  QueueLoad no_longer_queued_;  // since the last publish_stats()
  EngineStats counters_;

  // Shared with the callers.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Submission> inbox_;
  std::vector<Cancellation> cancels_;
  QueueRoom queue_;  // of requests of which no row was computed yet
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

Result<RequestId> EngineLoop::submit(Request request, std::shared_ptr<Sink> sink) {
  const bool answers = options_.output == EngineOutput::kLogits;
  STRATA_TRY(check_request(request, {context(), vocabulary(), answers}));
  const std::lock_guard lock(mutex_);
  STRATA_TRY(queue_.enter(std::ssize(request.tokens)));
  const RequestId id{next_request_++};
  inbox_.push_back({id, std::move(request), std::move(sink), Clock::now()});
  wake_.notify_all();
  return id;
}

void EngineLoop::enqueue(Cancellation cancellation) {
  const std::lock_guard lock(mutex_);
  cancels_.push_back(cancellation);
  wake_.notify_all();
}

EngineStats EngineLoop::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = published_;
  stats.waiting += static_cast<std::int32_t>(inbox_.size());
  stats.blocks = model_->plan.cache_blocks;
  return stats;
}

// The loop: drain, plan, compute, choose, commit.
void EngineLoop::loop() {
  while (wait_for_work()) {
    const bool more = drain_inbox();
    if (more) publish_stats();
    make_masks();
    const auto start = Clock::now();
    const StepPlan& plan = plan_step();
    counters_.plan_seconds += seconds_since(start);
    for (const Ended& ended : scheduler_.take_ended())
      finish(ended.sequence, {true, FinishReason::kError, ended.status});
    if (more) publish_stats();  // the step may take long
    if (!plan.empty()) step(plan);
    if (options_.after_step) send(options_.after_step);
    publish_stats();
  }
  (void)drain_inbox();
  while (!requests_.empty()) cancel_now({requests_.begin()->first, std::nullopt});
  if (options_.after_step) options_.after_step();
}

// Masks of the answers that may be in the next step; those whose masks must wait are held.
void EngineLoop::make_masks() {
  for (const SequenceId sequence : held_) (void)scheduler_.hold(sequence, false);
  held_.clear();
  late_.clear();
  const auto ready = [](const Choice& choice) {
    return !choice.constraint || choice.constraint->ready();
  };
  for (auto& [sequence, choice] : choices_) {
    if (ready(choice)) continue;
    if (scheduler_.runs(sequence))
      late_.push_back({sequence, choice.constraint.get(), &choice.mask_cost});
    else
      held_.push_back(sequence);  // until it runs
  }
  const double step = std::exchange(step_seconds_, 0);
  if (late_.empty() && held_.empty()) return;
  const bool others = std::ranges::any_of(choices_, [&](const auto& each) {
    return ready(each.second) && requests_.at(each.second.request).started;
  });
  const auto start = Clock::now();
  masks_.make(late_, others ? std::optional(step) : std::nullopt);
  counters_.sample_seconds += seconds_since(start);
  for (const MaskPace::Late& late : late_) held_.push_back(late.sequence);
  for (const SequenceId sequence : held_) (void)scheduler_.hold(sequence, true);
}

// Prompts take no more of the step than the pace of the generating sequences allows.
const StepPlan& EngineLoop::plan_step() {
  const std::int32_t budget = model_->plan.step.rows;
  const std::int32_t rows = pace_.prompt_rows(scheduler_.single_rows(), budget);
  scheduler_.set_stretch_rows(rows);
  const StepPlan& plan = scheduler_.plan_step();
  if (!plan.empty() || rows == budget) return plan;
  // None of those that generate found a block.
  scheduler_.set_stretch_rows(budget);
  return scheduler_.plan_step();
}

bool EngineLoop::wait_for_work() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock,
             [&] { return stop_ || !inbox_.empty() || !cancels_.empty() || !requests_.empty(); });
  return !stop_;
}

// Whether requests came.
bool EngineLoop::drain_inbox() {
  std::vector<Submission> submissions;
  std::vector<Cancellation> cancels;
  {
    const std::lock_guard lock(mutex_);
    submissions.swap(inbox_);
    cancels.swap(cancels_);
  }
  for (Submission& submission : submissions) start(std::move(submission));
  for (const Cancellation& each : cancels) cancel_now(each);
  return !submissions.empty();
}

void EngineLoop::start(Submission submission) {
  const SequenceId sequence{next_sequence_++};
  Request& request = submission.request;
  const Status status =
      scheduler_.add({sequence, request.tokens, request.logit_positions, request.max_tokens != 0,
                      request.priority, request.client, request.cache_salt});
  ActiveRequest active{.request = std::move(request),
                       .sink = std::move(submission.sink),
                       .arrived = submission.arrived,
                       .open_choices = 1,
                       .sequences = {sequence}};
  requests_.emplace(submission.id, std::move(active));
  choices_.emplace(sequence, Choice{submission.id, 0, 0, {}, nullptr});
  if (!status.ok()) finish(sequence, {true, FinishReason::kError, status});
}

void EngineLoop::cancel_now(const Cancellation& cancellation) {
  const auto found = requests_.find(cancellation.id);
  if (found == requests_.end()) return;
  // Before its tokens are drawn, a choice is the first one's sequence.
  if (cancellation.choice && !found->second.forked) return;
  const std::vector<SequenceId> sequences = found->second.sequences;
  for (const SequenceId sequence : sequences) {
    const auto choice = choices_.find(sequence);
    if (choice == choices_.end()) continue;
    if (cancellation.choice.value_or(choice->second.index) != choice->second.index) continue;
    // A sequence that is being torn down for an error is no longer the scheduler's.
    if (scheduler_.find(sequence) != nullptr) (void)scheduler_.cancel(sequence);
    finish(sequence, {true, FinishReason::kCancelled, {}});
  }
}

void EngineLoop::step(const StepPlan& plan) {
  report_starts(plan);
  const auto start = Clock::now();
  const double ran_before = thread_processor_seconds();
  const auto rows = model_->executor->run(plan);
  const double seconds = step_seconds_ = seconds_since(start);
  const double ran = std::min(thread_processor_seconds() - ran_before, seconds);
  counters_.compute_seconds += ran;
  counters_.stall_seconds += seconds - ran;
  if (!rows.ok()) return fail_step(plan, rows.status());
  pace_.observe(plan.rows - plan.stretch_rows, plan.stretch_rows, seconds);
  ++counters_.steps;
  counters_.rows += plan.rows;
  const auto sampling = Clock::now();
  const double sent = counters_.send_seconds;
  std::vector<Outcome> outcomes;
  std::int32_t next_row = 0;
  for (const SequenceSlice& slice : plan.slices) outcomes.push_back(settle(slice, *rows, next_row));
  apply(outcomes);
  counters_.sample_seconds += seconds_since(sampling) - (counters_.send_seconds - sent);
}

void EngineLoop::report_starts(const StepPlan& plan) {
  for (const SequenceSlice& slice : plan.slices) {
    ActiveRequest& active = requests_.at(choices_.at(slice.sequence).request);
    if (active.started) continue;
    leave_queue(active);
    const Sequence& sequence = *scheduler_.find(slice.sequence);
    const PromptStart start{sequence.cached, sequence.first_difference,
                            seconds_since(active.arrived)};
    send([&] { active.sink->on_start(start); });
  }
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
  if (slice.first < prompt) {
    counters_.prompt += std::min(end, prompt) - slice.first;
    send([&] { active.sink->on_prompt(std::min(end, prompt), prompt); });
  }
  for (std::size_t i = 0; i < slice.tokens.size(); ++i) {
    if (slice.wants_logits[i] == 0) continue;
    const auto logits = rows.row(next_row++);
    const Position position = slice.first + static_cast<Position>(i);
    const auto& wanted = active.request.logit_positions;
    if (std::binary_search(wanted.begin(), wanted.end(), position))
      send([&] { active.sink->on_logits(position, logits); });
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
    Result<Drawn> next = draw(active.request, choice, stream, logits, history);
    if (!next.ok()) {
      outcome.verdict = {true, FinishReason::kError, next.status()};
      return;
    }
    drawn.push_back(std::move(next).value());
  }
  Drawn& own = drawn.front();
  choice.sampler = own.sampler;
  choice.constraint = std::move(own.constraint);
  outcome.appended = {own.token};
  active.forked = true;
  outcome.verdict = judge(active, choice, own, static_cast<Position>(history.size()) + 1);
  outcome.siblings.assign(std::move_iterator(drawn.begin() + 1), std::move_iterator(drawn.end()));
}

// The next token of a choice, or the first one of another that forks from it.
Result<EngineLoop::Drawn> EngineLoop::draw(const Request& request, Choice& choice,
                                           std::int32_t stream, std::span<const float> logits,
                                           std::span<const TokenId> history) {
  Drawn drawn;
  drawn.sampler = choice.sampler;
  if (stream == choice.index && choice.constraint) {
    drawn.constraint = std::move(choice.constraint);
  } else if (request.constraint) {
    drawn.constraint = request.constraint->clone();
  }
  std::span<const std::uint64_t> allowed;
  if (drawn.constraint) {
    STRATA_ASSIGN(allowed, drawn.constraint->allowed());
  }
  const RandomKey key{request.sampling.seed, static_cast<std::uint32_t>(stream),
                      static_cast<std::uint32_t>(history.size())};
  STRATA_ASSIGN(drawn.token,
                sampler_.sample(logits, request.sampling, history, key, drawn.sampler, allowed));
  if (is_stop(request, drawn.token)) return drawn;
  if (drawn.constraint) drawn.constraint->advance(drawn.token);
  if (request.top_logprobs >= 0)
    drawn.logprobs = log_probabilities(logits, drawn.token, request.top_logprobs);
  return drawn;
}

// Reports a chosen token and says whether it is the choice's last. `length`: tokens known with it.
Verdict EngineLoop::judge(const ActiveRequest& active, Choice& choice, const Drawn& drawn,
                          Position length) {
  const Request& request = active.request;
  if (is_stop(request, drawn.token)) return {true, FinishReason::kStop, {}};
  send([&] { active.sink->on_token(choice.index, {drawn.token, drawn.logprobs}); });
  ++choice.generated;
  if (request.max_tokens > 0 && choice.generated >= request.max_tokens)
    return {true, FinishReason::kLength, {}};
  if (length >= context()) return {true, FinishReason::kContext, {}};
  return {};
}

void EngineLoop::apply(std::vector<Outcome>& outcomes) {
  std::vector<Confirmed> confirmed;
  for (const Outcome& o : outcomes) {
    counters_.generated += static_cast<std::int64_t>(o.appended.size() + o.siblings.size());
    // A parent stays until its siblings have forked from it.
    const bool finished = o.verdict.finished && o.siblings.empty();
    confirmed.push_back({o.sequence, o.keep,
                         finished ? std::span<const TokenId>() : std::span(o.appended), finished});
  }
  const Status status = scheduler_.commit(confirmed);
  for (Outcome& o : outcomes) {
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

void EngineLoop::fork_siblings(Outcome& outcome) {
  const RequestId id = choices_.at(outcome.sequence).request;
  ActiveRequest& active = requests_.at(id);
  const Position length = scheduler_.find(outcome.sequence)->known();
  active.open_choices += static_cast<std::int32_t>(outcome.siblings.size());
  for (std::size_t i = 0; i < outcome.siblings.size(); ++i) {
    const SequenceId child{next_sequence_++};
    Drawn& drawn = outcome.siblings[i];
    Choice started{id, static_cast<std::int32_t>(i) + 1, 0, drawn.sampler,
                   std::move(drawn.constraint)};
    Choice& choice = choices_.emplace(child, std::move(started)).first->second;
    active.sequences.push_back(child);
    Verdict verdict = judge(active, choice, drawn, length);
    if (!verdict.finished) {
      const Status status = scheduler_.fork(outcome.sequence, child, drawn.token);
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
  const RequestId id = found->second.request;
  const std::int32_t first = found->second.index;
  choices_.erase(found);
  ActiveRequest& active = requests_.at(id);
  const std::shared_ptr<Sink> sink = active.sink;
  // Choices that were never started end with the one they would have forked from.
  const std::int32_t last = active.forked ? first : active.request.choices - 1;
  leave_queue(active);
  if (--active.open_choices == 0) requests_.erase(id);
  for (std::int32_t i = first; i <= last; ++i)
    send([&] { sink->on_finish(i, verdict.reason, verdict.status); });
}

void EngineLoop::leave_queue(ActiveRequest& active) {
  if (std::exchange(active.started, true)) return;
  no_longer_queued_.requests += 1;
  no_longer_queued_.tokens += std::ssize(active.request.tokens);
}

void EngineLoop::publish_stats() {
  SchedulerStats scheduler = scheduler_.stats();
  counters_.preemptions = scheduler.preemptions;
  counters_.prefix_queries = scheduler.prefix_queries;
  counters_.prefix_hits = scheduler.prefix_hits;
  counters_.prefix_evictions = scheduler.prefix_evictions;
  counters_.running = scheduler.running;
  counters_.waiting = scheduler.waiting;
  counters_.used_blocks = std::move(scheduler.used_blocks);
  counters_.cached_blocks = std::move(scheduler.cached_blocks);
  const std::lock_guard lock(mutex_);
  queue_.leave(std::exchange(no_longer_queued_, {}));
  published_ = counters_;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::load(ModelManifest manifest, const EngineOptions& options,
                                             const LoadProgress& progress) {
  STRATA_ASSIGN(auto model, load_model(std::move(manifest), options, progress));
  const auto groups = model->executor->cache_groups();
  const bool causal = model->graph.causal;
  const bool prefixes = causal && options.prefix_cache;
  STRATA_ASSIGN(Scheduler scheduler, Scheduler::create({model->plan.step.rows,
                                                        model->plan.step.logit_rows,
                                                        options.running,
                                                        {groups.begin(), groups.end()},
                                                        !causal,
                                                        prefixes ? kBlockTokens : 0,
                                                        prefixes ? model->plan.state_tokens : 0}));
  return std::unique_ptr<Engine>(
      std::make_unique<EngineLoop>(std::move(model), std::move(scheduler), options));
}

Result<std::unique_ptr<Engine>> Engine::load(const std::string& path, const EngineOptions& options,
                                             const LoadProgress& progress) {
  STRATA_ASSIGN(ModelManifest manifest, ModelManifest::open(path));
  return load(std::move(manifest), options, progress);
}

}  // namespace strata
