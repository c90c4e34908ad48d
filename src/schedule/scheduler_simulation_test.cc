// Random lives of many sequences in small caches, under a fake executor. Seeded: a failure repeats.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "schedule/fake_executor.h"
#include "schedule/scheduler.h"

namespace strata {
namespace {

constexpr int kSteps = STRATA_SLOW ? 2'000 : 10'000;  // of a scenario

struct Scenario {
  std::string name;
  SchedulerConfig config;
  int longest = 60;  // tokens of a sequence at its end
};

// A sequence by the test's own account.
struct Life {
  std::vector<TokenId> tokens;
  std::vector<TokenId> drafts;
  std::size_t given = 0;   // tokens that it did not produce itself
  std::size_t target = 0;  // tokens at which it finishes
  std::set<Position> wanted;
  std::set<Position> delivered;
  bool final_logits = true;
};

class Simulation {
 public:
  Simulation(const Scenario& scenario, std::uint64_t seed)
      : scenario_(scenario),
        random_(seed),
        scheduler_(Scheduler::create(scenario.config).value()),
        executor_(scenario.config.groups) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
      act();
      step();
    }
    scheduler_.set_max_chunk(scenario_.config.max_rows);
    scheduler_.set_stretch_rows(scenario_.config.max_rows);
    release_held();
    const int limit = steps_ + 100'000;
    failures_allowed_ = false;
    while (!lives_.empty() && steps_ < limit && !testing::Test::HasFatalFailure()) step();
    ASSERT_TRUE(lives_.empty()) << lives_.size() << " sequences never finished";
    for (const std::int32_t used : scheduler_.stats().used_blocks) ASSERT_EQ(used, 0);
  }

  std::string report() const {
    return fmt::format(
        "{:<22} {:>6} steps {:>7} rows {:>6} finished {:>5} outgrew {:>6} preemptions {:>6} copies "
        "{:>5} forks {:>6} drafts kept {:>5} rewound {:>6} cached {:>6} evictions",
        scenario_.name, steps_, rows_, finished_, outgrew_, preemptions(), copies_, forks_,
        drafts_kept_, rewound_, hits(), evictions());
  }
  int steps() const { return steps_; }
  // For want of blocks, not forced nor by a failed step.
  std::int64_t preemptions() const { return scheduler_.stats().preemptions - forced_ - failed_; }
  std::int64_t copies() const { return copies_; }
  std::int64_t takeovers() const { return scheduler_.stats().takeovers; }
  std::int64_t hits() const { return scheduler_.stats().prefix_hits; }
  std::int64_t evictions() const { return scheduler_.stats().prefix_evictions; }

 private:
  int uniform(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  bool chance(int percent) { return uniform(0, 99) < percent; }

  SequenceId any_life() {
    auto it = lives_.begin();
    std::advance(it, uniform(0, static_cast<int>(lives_.size()) - 1));
    return it->first;
  }

  void act() {
    if (lives_.size() < 24 && chance(45)) arrive();
    if (!lives_.empty() && lives_.size() < 32 && chance(12)) fork();
    if (!lives_.empty() && chance(2)) cancel();
    if (!lives_.empty() && chance(4)) force_preempt();
    if (!lives_.empty() && chance(10)) (void)scheduler_.checkpoint(any_life());
    if (!lives_.empty() && chance(3)) rewind();
    if (chance(5)) scheduler_.set_max_chunk(chance(50) ? uniform(1, 9) : 1'000);
    if (chance(5)) scheduler_.set_stretch_rows(chance(50) ? uniform(1, 9) : 1'000);
    if (chance(30)) release_held();
    if (!lives_.empty() && chance(20)) hold(any_life());
    if (chance(50)) draft();
    // Nothing that fails may change a sequence.
    ASSERT_FALSE(scheduler_.cancel(SequenceId{next_id_}).ok());
  }

  void arrive() {
    NewSequence sequence;
    sequence.id = SequenceId{next_id_++};
    const int length = uniform(1, std::max(1, scenario_.longest * 2 / 3));
    // Few distinct tokens: prefixes coincide often. Some go on where others have been.
    if (chance(50) && !ended_.empty()) {
      sequence.tokens = ended_[static_cast<std::size_t>(uniform(0, 15)) % ended_.size()];
      if (sequence.tokens.size() > static_cast<std::size_t>(length))
        sequence.tokens.resize(static_cast<std::size_t>(length));
    }
    while (sequence.tokens.size() < static_cast<std::size_t>(length))
      sequence.tokens.push_back(uniform(0, 3));
    if (chance(30)) {
      for (Position p = 0; p < length; ++p) {
        if (chance(20)) sequence.logit_positions.push_back(p);
      }
    }
    sequence.final_logits = chance(90);
    sequence.priority = uniform(0, 2);
    // Mostly of one client for a while.
    sequence.client = static_cast<std::uint64_t>(chance(20) ? uniform(0, 3) : steps_ / 64 % 4);
    sequence.cache_salt = chance(80) ? "" : "salt";
    Life life;
    life.tokens = sequence.tokens;
    life.given = life.tokens.size();
    life.target = life.given + static_cast<std::size_t>(uniform(1, scenario_.longest / 3 + 1));
    life.final_logits = sequence.final_logits;
    life.wanted.insert(sequence.logit_positions.begin(), sequence.logit_positions.end());
    const SequenceId id = sequence.id;
    if (const Status added = scheduler_.add(std::move(sequence)); added.ok()) {
      lives_[id] = std::move(life);
    } else {
      ASSERT_EQ(added.code(), StatusCode::kResourceExhausted) << added.message();
      ++outgrew_;
    }
  }

  void fork() {
    const SequenceId parent = any_life();
    const SequenceId child{next_id_++};
    Life life = lives_[parent];
    life.drafts.clear();
    std::optional<TokenId> last;
    // A token of its own, unless the row behind it was asked for.
    if (chance(70) && life.given < life.tokens.size()) last = life.tokens.back() = uniform(0, 49);
    life.given = life.tokens.size();
    ASSERT_TRUE(scheduler_.fork(parent, child, last).ok());
    lives_[child] = std::move(life);
    ++forks_;
  }

  void cancel() {
    const SequenceId id = any_life();
    ASSERT_TRUE(scheduler_.cancel(id).ok());
    remember(lives_.at(id));
    lives_.erase(id);
  }

  void remember(const Life& life) {
    ended_.push_back(life.tokens);
    if (ended_.size() > 16) ended_.pop_front();
  }

  void force_preempt() {
    const SequenceId id = any_life();
    if (!scheduler_.force_preempt(id).ok()) return;
    lives_[id].drafts.clear();
    ++forced_;
  }

  void hold(SequenceId id) {
    if (scheduler_.hold(id, true).ok()) held_.push_back(id);
  }
  void release_held() {
    for (const SequenceId id : held_) (void)scheduler_.hold(id, false);
    held_.clear();
  }

  // Takes back some tokens, of the prompt too, and goes on with others.
  void rewind() {
    const SequenceId id = any_life();
    Life& life = lives_[id];
    const auto keep = static_cast<Position>(
        std::max(0, static_cast<int>(life.tokens.size()) - uniform(0, scenario_.longest / 4)));
    std::vector<TokenId> then(static_cast<std::size_t>(uniform(1, 3)));
    for (TokenId& token : then) token = uniform(0, 49);
    ASSERT_TRUE(scheduler_.rewind(id, keep, then).ok());
    life.tokens.resize(static_cast<std::size_t>(keep));
    life.tokens.insert(life.tokens.end(), then.begin(), then.end());
    life.drafts.clear();
    life.given = life.tokens.size();
    life.target = std::max(life.target, life.given + 1);
    for (auto* positions : {&life.wanted, &life.delivered}) {
      positions->erase(positions->lower_bound(keep), positions->end());
    }
    ++rewound_;
  }

  void draft() {
    for (const SequenceId id : scheduler_.runnable()) {
      Life& life = lives_[id];
      if (!life.final_logits || !chance(40)) continue;
      life.drafts.clear();
      std::vector<TokenId> all = life.tokens;
      for (int i = uniform(0, 5); i-- > 0;) {
        const TokenId right = next_token(prefix_hashes(all).back());
        all.push_back(chance(75) ? right : uniform(0, 49));
        life.drafts.push_back(all.back());
      }
      ASSERT_TRUE(scheduler_.extend(id, life.drafts).ok());
    }
  }

  void step() {
    const StepPlan& plan = scheduler_.plan_step();
    ++steps_;
    rows_ += plan.rows;
    copies_ += static_cast<std::int64_t>(plan.copies.size());
    const std::size_t ended = settle_ended();
    if (plan.empty()) {
      ASSERT_TRUE(lives_.empty() || ended > 0 || !held_.empty()) << "nobody can progress";
      return release_held();
    }
    check(scheduler_.check_invariants());
    check_plan(plan);
    check(executor_.run(plan, [&](SequenceId id) { return known_tokens(id); }));
    if (testing::Test::HasFatalFailure()) return;
    confirm(plan);
    check(scheduler_.check_invariants());
  }

  void check(const Status& status) {
    ASSERT_TRUE(status.ok()) << scenario_.name << ", step " << steps_ << ": " << status.message();
  }

  std::size_t settle_ended() {
    const std::vector<Ended> all = scheduler_.take_ended();
    for (const Ended& ended : all) {
      EXPECT_EQ(ended.status.code(), StatusCode::kResourceExhausted) << ended.status.message();
      EXPECT_TRUE(exceeds_a_pool(lives_.at(ended.sequence).tokens.size()));
      lives_.erase(ended.sequence);
      ++outgrew_;
    }
    return all.size();
  }

  // Whether one of the last rows needs, alone, more blocks than some pool has.
  bool exceeds_a_pool(std::size_t known) const {
    for (const CacheGroup& group : scenario_.config.groups) {
      for (std::int32_t row = 0; row < static_cast<std::int32_t>(known); ++row) {
        const std::int32_t first = group.window == 0 ? 0 : std::max(0, row - group.window + 1);
        if (row / group.block_tokens - first / group.block_tokens + 1 > group.blocks) return true;
      }
    }
    return false;
  }

  std::span<const TokenId> known_tokens(SequenceId id) {
    const Life& life = lives_.at(id);
    known_ = life.tokens;
    known_.insert(known_.end(), life.drafts.begin(), life.drafts.end());
    return known_;
  }

  void check_plan(const StepPlan& plan) {
    std::int32_t rows = 0, logit_rows = 0;
    for (const SequenceSlice& slice : plan.slices) {
      ASSERT_FALSE(slice.tokens.empty());
      const Sequence& sequence = *scheduler_.find(slice.sequence);
      ASSERT_TRUE(!sequence.held || slice.first + sequence.planned < sequence.firm());
      ASSERT_EQ(slice.tokens.size(), slice.wants_logits.size());
      rows += static_cast<std::int32_t>(slice.tokens.size());
      for (std::size_t row = 0; row < slice.wants_logits.size(); ++row) {
        const Position position = slice.first + static_cast<Position>(row);
        ASSERT_EQ(slice.wants_logits[row] != 0, owes_logits(lives_.at(slice.sequence), position))
            << "sequence " << slice.sequence.value << ", row " << position;
        logit_rows += slice.wants_logits[row];
      }
    }
    ASSERT_EQ(rows, plan.rows);
    ASSERT_EQ(logit_rows, plan.logit_rows);
    ASSERT_LE(rows, scenario_.config.max_rows);
    ASSERT_LE(logit_rows, scenario_.config.max_logit_rows);
    ASSERT_LE(scheduler_.stats().running, scenario_.config.max_running);
    ASSERT_LE(takeovers(), steps_ / static_cast<int>(kStepsPerTakeover));
  }

  static bool owes_logits(const Life& life, Position position) {
    if (life.delivered.contains(position)) return false;
    if (life.wanted.contains(position)) return true;
    return life.final_logits && position + 1 >= static_cast<Position>(life.tokens.size());
  }

  void confirm(const StepPlan& plan) {
    const bool fails = failures_allowed_ && chance(2);
    std::vector<Confirmed> confirmed;
    std::vector<std::vector<TokenId>> appended(plan.slices.size());
    std::vector<SequenceId> done;
    for (std::size_t i = 0; i < plan.slices.size(); ++i) {
      const SequenceSlice& slice = plan.slices[i];
      if (fails && chance(50)) {
        lives_.at(slice.sequence).drafts.clear();
        ++failed_;
        continue;
      }
      confirmed.push_back(choose(slice, appended[i]));
      if (confirmed.back().finished) done.push_back(slice.sequence);
    }
    check(scheduler_.commit(confirmed));
    for (const SequenceId id : done) finish(id);
  }

  // Samples greedily and keeps the drafts that agree.
  Confirmed choose(const SequenceSlice& slice, std::vector<TokenId>& appended) {
    Life& life = lives_.at(slice.sequence);
    const auto firm = static_cast<Position>(life.tokens.size());
    const auto end = slice.first + static_cast<Position>(slice.tokens.size());
    Position keep_end = end;
    bool finished = false;
    if (end >= firm) {
      keep_end = firm;
      finished = !life.final_logits;
      while (life.final_logits) {
        const TokenId token = next_token(executor_.row_hash(slice, keep_end - 1));
        life.tokens.push_back(token);
        finished = life.tokens.size() >= life.target;
        if (finished || keep_end == end ||
            slice.tokens[static_cast<std::size_t>(keep_end - slice.first)] != token) {
          appended.push_back(token);
          break;
        }
        ++keep_end;
        ++drafts_kept_;
      }
      life.drafts.clear();
    }
    for (Position position = slice.first; position < keep_end; ++position) {
      if (slice.wants_logits[static_cast<std::size_t>(position - slice.first)]) {
        EXPECT_TRUE(life.delivered.insert(position).second) << "delivered twice";
      }
    }
    return {slice.sequence, keep_end - slice.first, appended, finished};
  }

  void finish(SequenceId id) {
    const Life& life = lives_.at(id);
    const std::vector<std::uint64_t> hashes = prefix_hashes(life.tokens);
    for (std::size_t i = life.given; i < life.tokens.size(); ++i) {
      ASSERT_EQ(life.tokens[i], next_token(hashes[i - 1])) << "sequence " << id.value;
    }
    for (const Position position : life.wanted) ASSERT_TRUE(life.delivered.contains(position));
    remember(life);
    lives_.erase(id);
    ++finished_;
  }

  const Scenario scenario_;
  std::mt19937_64 random_;
  Scheduler scheduler_;
  FakeExecutor executor_;
  std::map<SequenceId, Life> lives_;
  std::vector<TokenId> known_;
  std::deque<std::vector<TokenId>> ended_;  // tokens of the last sequences
  std::vector<SequenceId> held_;
  std::int64_t next_id_ = 0;
  bool failures_allowed_ = true;
  int steps_ = 0, finished_ = 0, forced_ = 0, failed_ = 0, outgrew_ = 0, forks_ = 0;
  std::int64_t rows_ = 0, copies_ = 0, drafts_kept_ = 0, rewound_ = 0;
};

std::vector<Scenario> scenarios() {
  return {
      {"roomy", {.max_rows = 64, .max_logit_rows = 64, .max_running = 16, .groups = {{4, 600, 0}}}},
      {"tight", {.max_rows = 32, .max_logit_rows = 16, .max_running = 8, .groups = {{4, 40, 0}}}},
      {"tiny", {.max_rows = 16, .max_logit_rows = 4, .max_running = 8, .groups = {{4, 12, 0}}}},
      {"one at a time",
       {.max_rows = 1, .max_logit_rows = 1, .max_running = 1, .groups = {{2, 20, 0}}},
       20},
      {"few slots",
       {.max_rows = 24, .max_logit_rows = 12, .max_running = 3, .groups = {{4, 150, 0}}},
       200},
      {"full and windowed",
       {.max_rows = 24,
        .max_logit_rows = 12,
        .max_running = 8,
        .groups = {{4, 48, 0}, {4, 20, 10}}}},
      {"windows only",
       {.max_rows = 24,
        .max_logit_rows = 12,
        .max_running = 8,
        .groups = {{3, 14, 7}, {1, 24, 5}}}},
      {"window of one",
       {.max_rows = 24, .max_logit_rows = 12, .max_running = 8, .groups = {{4, 8, 1}, {5, 30, 0}}}},
      {"blocks of one token",
       {.max_rows = 24, .max_logit_rows = 12, .max_running = 8, .groups = {{1, 150, 0}}}},
      {"blocks of 16",
       {.max_rows = 40,
        .max_logit_rows = 20,
        .max_running = 12,
        .groups = {{16, 18, 0}, {16, 14, 20}}}},
      {"states only",
       {.max_rows = 24,
        .max_logit_rows = 12,
        .max_running = 8,
        .groups = {{kEveryPosition, 9, 0}}}},
      {"one state",
       {.max_rows = 16, .max_logit_rows = 8, .max_running = 8, .groups = {{kEveryPosition, 1, 0}}},
       24},
      {"states and blocks",
       {.max_rows = 24,
        .max_logit_rows = 12,
        .max_running = 8,
        .groups = {{4, 40, 0}, {kEveryPosition, 10, 0}, {kEveryPosition, 7, 0}}}},
      {"states and windows",
       {.max_rows = 24,
        .max_logit_rows = 12,
        .max_running = 8,
        .groups = {{kEveryPosition, 8, 0}, {3, 20, 7}, {4, 40, 0}}}},
      {"many, few logits",
       {.max_rows = 48, .max_logit_rows = 2, .max_running = 20, .groups = {{4, 80, 0}}}},
  };
}

// Those whose blocks all have one size, with a prefix cache.
std::vector<Scenario> cached_scenarios() {
  std::vector<Scenario> cached;
  for (Scenario scenario : scenarios()) {
    SchedulerConfig& config = scenario.config;
    config.prefix_tokens = 4;
    for (const CacheGroup& group : config.groups)
      if (!group.is_state()) config.prefix_tokens = group.block_tokens;
    scenario.name += ", cached";
    if (!Scheduler::create(config).ok()) continue;
    cached.push_back(scenario);
    if (!std::ranges::any_of(config.groups, &CacheGroup::is_state)) continue;
    scenario.name += " within prompts";
    config.state_tokens = 2 * config.prefix_tokens;
    cached.push_back(scenario);
  }
  return cached;
}

TEST(SchedulerSimulation, EverySequenceFinishesWithItsOwnTokens) {
  int steps = 0;
  std::int64_t preemptions = 0, takeovers = 0, copies = 0, hits = 0, evictions = 0;
  std::uint64_t seed = 1;
  std::vector<Scenario> all = scenarios();
  for (Scenario& scenario : cached_scenarios()) all.push_back(std::move(scenario));
  for (const Scenario& scenario : all) {
    Simulation simulation(scenario, seed++);
    simulation.run(kSteps);
    std::cout << simulation.report() << "\n";
    ASSERT_FALSE(HasFailure()) << scenario.name;
    steps += simulation.steps();
    preemptions += simulation.preemptions();
    takeovers += simulation.takeovers();
    copies += simulation.copies();
    hits += simulation.hits();
    evictions += simulation.evictions();
    if (scenario.config.prefix_tokens == 0) {
      EXPECT_EQ(simulation.hits(), 0) << scenario.name;
    }
  }
  std::cout << steps << " steps, " << preemptions << " preemptions, " << takeovers
            << " of them takeovers, " << copies << " copies\n";
  EXPECT_GE(steps, 20 * kSteps);
  EXPECT_GT(preemptions, kSteps / 10);
  EXPECT_GT(takeovers, kSteps / 2000);
  EXPECT_GT(copies, kSteps / 10);
  EXPECT_GT(hits, kSteps);
  EXPECT_GT(evictions, kSteps);
}

}  // namespace
}  // namespace strata
