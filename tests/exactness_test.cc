// The law of exactness: the logits of a token depend on its sequence alone, bit for bit, whatever
// shares the step. Every architecture as stored and in Q8_0, and a dense model and a mixture in
// every format, in every way a sequence can be computed; some of them on every ISA, too, and all
// ISAs give the same bits.
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <map>
#include <random>

#include "device/cpu/isa_select.h"
#include "formats/all.h"
#include "schedule/scheduler.h"
#include "tests/model_fixture.h"
#include "tests/shared_data.h"

namespace strata {
namespace {

using testing::LoadedModel;
using testing::ModelOptions;

constexpr int kGenerated = 5;

// Logits by position; tokens as they were in the end.
struct Trace {
  std::vector<TokenId> tokens;
  std::map<Position, std::vector<float>> logits;
};

struct Mode {
  std::string name;
  std::int32_t max_rows = 256;
  std::int32_t max_chunk = 1 << 20;
  bool together = true;   // all sequences at once, or one after the other
  int preempt_every = 0;  // steps between forced preemptions
  bool fork = false;      // a child per sequence that goes on with another token
  // At most so many blocks of each group of keys and values, or of states.
  std::int32_t cache_blocks = std::numeric_limits<std::int32_t>::max();
  std::int32_t state_blocks = std::numeric_limits<std::int32_t>::max();
  // What the sequences will say: each step drafts two tokens of it and a wrong one.
  const std::vector<Trace>* foreseen = nullptr;
  bool prefixes = false;          // a prefix cache, and logits of the prompt's last row only
  std::int32_t state_tokens = 0;  // between states saved within a prompt
};

// Drives sequences through the scheduler and executor of a model and records every logits row.
class Driver {
 public:
  Driver(LoadedModel& model, const Mode& mode) : model_(model), mode_(mode) {
    const auto all = model.executor->cache_groups();
    std::vector<CacheGroup> groups(all.begin(), all.end());
    for (CacheGroup& group : groups)
      group.blocks =
          std::min(group.blocks, group.is_state() ? mode.state_blocks : mode.cache_blocks);
    auto scheduler = Scheduler::create({mode.max_rows, mode.max_rows, 64, std::move(groups), false,
                                        mode.prefixes ? kBlockTokens : 0, mode.state_tokens});
    EXPECT_TRUE(scheduler.ok());
    scheduler_ = std::make_unique<Scheduler>(std::move(scheduler).value());
    scheduler_->set_max_chunk(mode.max_chunk);
  }

  // `generate`: tokens appended to each prompt. Children, if the mode forks, follow the prompts.
  std::vector<Trace> run(const std::vector<std::vector<TokenId>>& prompts, int generate) {
    traces_.resize(mode_.fork ? 2 * prompts.size() : prompts.size());
    target_.clear();
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      target_.push_back(prompts[i].size() + static_cast<std::size_t>(generate));
      std::vector<Position> all(mode_.prefixes ? 0 : prompts[i].size());
      for (std::size_t p = 0; p < all.size(); ++p) all[p] = static_cast<Position>(p);
      const Status status = scheduler_->add(
          {SequenceId{static_cast<std::int64_t>(i)}, prompts[i], std::move(all), true, 0});
      EXPECT_TRUE(status.ok()) << status.message();
      if (!mode_.together) drain();
    }
    drain();
    return std::exchange(traces_, {});
  }

  std::int64_t preemptions() const { return scheduler_->stats().preemptions; }
  std::int64_t hits() const { return scheduler_->stats().prefix_hits; }
  std::int64_t evictions() const { return scheduler_->stats().prefix_evictions; }

 private:
  void drain() {
    for (int step = 1;; ++step) {
      if (mode_.foreseen != nullptr) draft();
      const StepPlan& plan = scheduler_->plan_step();
      if (plan.empty()) return;
      const auto rows = model_.executor->run(plan);
      ASSERT_TRUE(rows.ok()) << rows.status().message();
      commit(plan, *rows);
      if (mode_.preempt_every > 0 && step % mode_.preempt_every == 0) preempt_one(step);
      ASSERT_TRUE(scheduler_->check_invariants().ok());
    }
  }

  void commit(const StepPlan& plan, const LogitRows& rows) {
    struct Answer {
      SequenceId id;
      Position keep;
      std::vector<TokenId> appended;
      bool finished;
      bool first;
    };
    std::vector<Answer> answers;
    std::int32_t row = 0;
    for (const SequenceSlice& slice : plan.slices) {
      Trace& trace = traces_[static_cast<std::size_t>(slice.sequence.value)];
      const auto target = target_[static_cast<std::size_t>(slice.sequence.value)];
      const Sequence& sequence = *scheduler_->find(slice.sequence);
      Answer answer{slice.sequence, static_cast<Position>(slice.tokens.size()), {}, false, false};
      bool stands = true;  // false behind the first wrong draft
      for (std::size_t i = 0; i < slice.tokens.size(); ++i) {
        if (slice.wants_logits[i] == 0) continue;
        const auto logits = rows.row(row++);
        if (!stands) continue;
        const auto position = slice.first + static_cast<Position>(i);
        trace.logits[position].assign(logits.begin(), logits.end());
        if (position + 1 < sequence.firm()) continue;
        answer.first |= trace.tokens.empty();
        trace.tokens.assign(sequence.tokens.begin(), sequence.tokens.begin() + position + 1);
        answer.finished = trace.tokens.size() >= target;
        const TokenId chosen = best(logits);
        const bool drafted = i + 1 < slice.tokens.size() && slice.tokens[i + 1] == chosen;
        if (drafted && !answer.finished) continue;
        stands = false;
        answer.keep = static_cast<Position>(i) + 1;
        if (!answer.finished) answer.appended = {chosen};
      }
      answers.push_back(std::move(answer));
    }
    std::vector<Confirmed> confirmed;
    for (const Answer& a : answers) confirmed.push_back({a.id, a.keep, a.appended, a.finished});
    const Status status = scheduler_->commit(confirmed);
    ASSERT_TRUE(status.ok()) << status.message();
    if (!mode_.fork) return;
    for (const Answer& a : answers)
      if (a.first && !a.finished && static_cast<std::size_t>(a.id.value) * 2 < traces_.size())
        fork(a.id, a.appended.front());
  }

  void draft() {
    for (const SequenceId id : scheduler_->runnable()) {
      const auto& known = scheduler_->find(id)->tokens;
      const auto& all = (*mode_.foreseen)[static_cast<std::size_t>(id.value)].tokens;
      std::vector<TokenId> drafts;
      for (std::size_t p = known.size(); p < all.size() && drafts.size() < 2; ++p)
        drafts.push_back(all[p]);
      drafts.push_back(0);
      const Status status = scheduler_->extend(id, drafts);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }

  void fork(SequenceId parent, TokenId chosen) {
    const auto child = parent.value + static_cast<std::int64_t>(traces_.size() / 2);
    target_.resize(traces_.size(), target_[static_cast<std::size_t>(parent.value)]);
    target_[static_cast<std::size_t>(child)] = target_[static_cast<std::size_t>(parent.value)];
    const Status status = scheduler_->fork(parent, SequenceId{child}, other_token(chosen));
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void preempt_one(int step) {
    const auto id = SequenceId{step % static_cast<std::int64_t>(traces_.size())};
    const Sequence* sequence = scheduler_->find(id);
    if (sequence == nullptr || sequence->computed == 0) return;
    const Status status = scheduler_->force_preempt(id);
    ASSERT_TRUE(status.ok()) << status.message();
  }

 public:
  static TokenId best(std::span<const float> logits) {
    return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
  }
  static TokenId other_token(TokenId chosen) { return chosen == 0 ? 1 : chosen - 1; }

 private:
  LoadedModel& model_;
  const Mode mode_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<Trace> traces_;
  std::vector<std::size_t> target_;
};

// Lengths around every edge: the tile of 4 rows, the block of 32 tokens, the attention partition
// of 256 positions, and past two of them; and a few of them, as the scalar kernels are slow.
constexpr int kLengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 65, 130, 257, 530};
constexpr int kFewLengths[] = {3, 31, 32, 63, 64, 257};
// Formats are of the matrices that rows are multiplied by, not of what attention reads: of those
// lengths, the ones within its first partition.
constexpr auto kLengthsOfFormats = std::span(kLengths).first<14>();
constexpr auto kFewLengthsOfFormats = std::span(kFewLengths).first<5>();

std::vector<std::vector<TokenId>> make_prompts(std::span<const int> lengths) {
  std::vector<std::vector<TokenId>> prompts;
  std::mt19937 random(99);
  for (const int length : lengths) {
    prompts.emplace_back();
    for (int i = 0; i < length; ++i) prompts.back().push_back(static_cast<TokenId>(random() % 500));
  }
  return prompts;
}

// Positions that `mode` delivered must carry the baseline's bits; every one must be there.
void expect_same(const Trace& got, const Trace& expected, const std::string& what) {
  ASSERT_EQ(got.tokens, expected.tokens) << what;
  ASSERT_EQ(got.logits.size(), expected.logits.size()) << what;
  for (const auto& [position, row] : expected.logits) {
    const auto found = got.logits.find(position);
    ASSERT_NE(found, got.logits.end()) << what << " position " << position;
    for (std::size_t v = 0; v < row.size(); ++v)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(row[v]),
                std::bit_cast<std::uint32_t>(found->second[v]))
          << what << " position " << position << " token " << v;
  }
}

// As above, of the rows that were delivered; of the others the cache may have stood for some.
void expect_same_rows(const Trace& got, const Trace& expected, const std::string& what) {
  Trace delivered{got.tokens, {}};
  for (const auto& [position, row] : got.logits)
    delivered.logits[position] = expected.logits.at(position);
  ASSERT_TRUE(got.logits.contains(static_cast<Position>(got.tokens.size()) - 1)) << what;
  expect_same(got, delivered, what);
}

class ExactnessLaw : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { STRATA_REQUIRE_REFERENCE(GetParam()); }

  Result<std::unique_ptr<LoadedModel>> load(const std::string& path, int threads,
                                            std::int32_t sequences, Isa isa = Isa::kBest) const {
    ModelOptions options;
    options.cache = cache_;
    options.cpu = {threads, isa, false};
    options.sequences = sequences;
    return testing::load_model(path, options);
  }

  // `alone` becomes what the prompts give one after the other.
  void check_model(const std::string& path, Isa isa, std::span<const int> lengths,
                   std::vector<Trace>& alone) {
    const auto prompts = make_prompts(lengths);
    auto one_thread = load(path, 1, 16, isa);
    ASSERT_TRUE(one_thread.ok()) << one_thread.status().message();
    alone = Driver(**one_thread, {.name = "alone", .together = false}).run(prompts, kGenerated);
    auto two_threads = load(path, 2, 16, isa);
    ASSERT_TRUE(two_threads.ok());
    const Mode modes[] = {
        {.name = "batched"},
        {.name = "chunks of 7", .max_rows = 61, .max_chunk = 7},
        {.name = "chunks of 37, preempted", .max_rows = 150, .max_chunk = 37, .preempt_every = 3},
        {.name = "drafted", .max_rows = 120, .foreseen = &alone},
    };
    for (const Mode& mode : modes) {
      const auto traces = Driver(**two_threads, mode).run(prompts, kGenerated);
      for (std::size_t i = 0; i < prompts.size(); ++i)
        expect_same(traces[i], alone[i], fmt::format("{}, prompt {}", mode.name, i));
    }
    check_scarce_cache(**two_threads, prompts, alone);
    check_prompt_rows(**two_threads, alone);
    check_forks(**two_threads, prompts, alone);
  }

  void check_model(const std::string& path, std::span<const int> lengths = kLengths) {
    std::vector<Trace> alone;
    check_model(path, Isa::kBest, lengths, alone);
  }

  void check_every_isa(const std::string& path, std::span<const int> lengths = kFewLengths) {
    std::vector<Trace> expected, got;
    for (const Isa isa : runnable_isas()) {
      SCOPED_TRACE(select_kernels(isa).value()->name);
      check_model(path, isa, lengths, got);
      if (HasFatalFailure()) return;
      if (expected.empty()) expected = got;
      for (std::size_t i = 0; i < expected.size(); ++i)
        expect_same(got[i], expected[i], fmt::format("prompt {}", i));
    }
  }

  static bool has_group(const LoadedModel& model, bool of_states) {
    return std::ranges::any_of(model.executor->cache_groups(), [&](const CacheGroup& group) {
      return group.is_state() == of_states;
    });
  }

  // Keys and values for the longest sequence, the last, alone: as all grow, the scheduler must
  // preempt by itself.
  static void check_scarce_cache(LoadedModel& model,
                                 const std::vector<std::vector<TokenId>>& prompts,
                                 const std::vector<Trace>& alone) {
    if (!has_group(model, false)) return;
    const auto longest = static_cast<std::int32_t>(prompts.back().size()) + kGenerated;
    Driver driver(model, {.name = "scarce cache", .cache_blocks = ceil_div(longest, kBlockTokens)});
    const auto traces = driver.run(prompts, kGenerated);
    EXPECT_GT(driver.preemptions(), 0);
    for (std::size_t i = 0; i < prompts.size(); ++i)
      expect_same(traces[i], alone[i], fmt::format("scarce cache, prompt {}", i));
  }

  // Tokens that were generated one by one, now as a prompt.
  static void check_prompt_rows(LoadedModel& model, const std::vector<Trace>& alone) {
    std::vector<std::vector<TokenId>> whole;
    for (const Trace& trace : alone) whole.push_back(trace.tokens);
    const auto traces = Driver(model, {.name = "prompt rows"}).run(whole, 0);
    for (std::size_t i = 0; i < whole.size(); ++i)
      expect_same(traces[i], alone[i], fmt::format("prompt rows, prompt {}", i));
  }

  static void check_forks(LoadedModel& model, const std::vector<std::vector<TokenId>>& prompts,
                          const std::vector<Trace>& alone) {
    std::vector<std::vector<TokenId>> child_prompts = prompts;
    for (std::size_t i = 0; i < prompts.size(); ++i)
      child_prompts[i].push_back(Driver::other_token(
          Driver::best(alone[i].logits.at(static_cast<Position>(prompts[i].size()) - 1))));
    auto children =
        Driver(model, {.name = "children", .together = false}).run(child_prompts, kGenerated - 1);
    // A child inherits the prompt's rows and delivers none of them.
    for (std::size_t i = 0; i < prompts.size(); ++i)
      std::erase_if(children[i].logits, [&](const auto& entry) {
        return entry.first < static_cast<Position>(prompts[i].size());
      });
    check_forked(model, {.name = "forked", .fork = true}, prompts, alone, children);
    if (!has_group(model, true)) return;
    // No state is left for what parent and child go on with: the child is preempted.
    const Mode scarce{.name = "scarce states, forked", .fork = true, .state_blocks = 2};
    EXPECT_GT(check_forked(model, scarce, prompts, alone, children), 0);
  }

  // Everybody's prompt twice at a time, so that they share what is under way; then the same again
  // and the answers as prompts, from the cache; beginnings that end within cached blocks and with
  // them.
  void check_prefixes(const std::string& path) {
    auto model = load(path, 2, 16);
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto prompts = make_prompts(kLengths);
    const auto alone =
        Driver(**model, {.name = "alone", .together = false}).run(prompts, kGenerated);
    const Mode modes[] = {
        {.name = "cached", .prefixes = true},
        {.name = "cached, chunks of 37, preempted",
         .max_rows = 150,
         .max_chunk = 37,
         .preempt_every = 3,
         .prefixes = true,
         .state_tokens = 2 * kBlockTokens},
        {.name = "cached, scarce", .cache_blocks = 19, .state_blocks = 6, .prefixes = true},
    };
    const std::size_t count = prompts.size();
    for (std::size_t i = 0; i < count; ++i) prompts.push_back(prompts[i]);
    for (const Mode& mode : modes) {
      Driver driver(**model, mode);
      for (const char* round : {"first", "second"}) {
        const auto traces = driver.run(prompts, kGenerated);
        for (std::size_t i = 0; i < prompts.size(); ++i)
          expect_same_rows(traces[i], alone[i % count],
                           fmt::format("{}, {} round, prompt {}", mode.name, round, i));
      }
      check_beginnings(driver, alone, mode.name);
      EXPECT_GT(driver.hits(), 0) << mode.name;
      const bool scarce = mode.cache_blocks < 100;
      if (scarce) {
        EXPECT_GT(driver.evictions(), 0);
      }
    }
  }

  static void check_beginnings(Driver& driver, const std::vector<Trace>& alone,
                               const std::string& name) {
    std::vector<std::vector<TokenId>> beginnings;
    std::vector<Trace> expected;
    for (const Trace& trace : alone) {
      for (const std::size_t length : {32, 64, 67, 96, 256, 300, 535}) {
        if (length > trace.tokens.size()) continue;
        beginnings.emplace_back(trace.tokens.begin(),
                                trace.tokens.begin() + static_cast<std::ptrdiff_t>(length));
        expected.push_back({beginnings.back(), trace.logits});
      }
    }
    const auto traces = driver.run(beginnings, 0);
    for (std::size_t i = 0; i < beginnings.size(); ++i)
      expect_same_rows(traces[i], expected[i],
                       fmt::format("{}, the first {} tokens", name, beginnings[i].size()));
  }

  // Returns how often a sequence was preempted.
  static std::int64_t check_forked(LoadedModel& model, const Mode& mode,
                                   const std::vector<std::vector<TokenId>>& prompts,
                                   const std::vector<Trace>& parents,
                                   const std::vector<Trace>& children) {
    Driver driver(model, mode);
    const auto forked = driver.run(prompts, kGenerated);
    const auto check = [&](std::size_t i, const Trace& expected) {
      expect_same(forked[i], expected, fmt::format("{}, sequence {}", mode.name, i));
    };
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      check(i, parents[i]);
      check(i + prompts.size(), children[i]);
    }
    return driver.preemptions();
  }

  std::optional<CacheFormat> cache_;
};

std::string reference_model(const std::string& name) {
  return testing::reference_path(name) + ".gguf";
}

// What the files hold, and 8-bit activations.
TEST_P(ExactnessLaw, HoldsInEveryMode) {
  const std::string base = reference_model(GetParam());
  check_model(base);
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("model.gguf");
  const Status status = testing::reencode_model(base, FormatId::Q8_0, path);
  ASSERT_TRUE(status.ok()) << status.message();
  check_model(path);
}

class ExactnessOfCodedCache : public ExactnessLaw {};

TEST_P(ExactnessOfCodedCache, HoldsInEveryMode) {
  cache_ = CacheFormat::kQ8_0;
  check_model(reference_model(GetParam()));
}

class ExactnessOfFormats : public ExactnessLaw {};

TEST_P(ExactnessOfFormats, HoldsInEveryMode) {
  const testing::TemporaryFolder folder;
  int checked = 0;
  for (const FormatId format : ids_of(AllFormats{})) {
    SCOPED_TRACE(format_name(format));
    const std::string path = folder.path("model.gguf");
    const Status status = testing::reencode_model(reference_model(GetParam()), format, path);
    if (status.code() == StatusCode::kUnsupported) continue;  // rows too short for the format
    ASSERT_TRUE(status.ok()) << status.message();
    check_model(path, kLengthsOfFormats);
    if (HasFatalFailure()) return;
    ++checked;
  }
  EXPECT_GE(checked, 8);
  std::printf("%s: %d formats\n", GetParam(), checked);
}

TEST_P(ExactnessLaw, HoldsWithCachedPrefixes) { check_prefixes(reference_model(GetParam())); }

TEST_P(ExactnessOfCodedCache, HoldsWithCachedPrefixes) {
  cache_ = CacheFormat::kQ8_0;
  check_prefixes(reference_model(GetParam()));
}

TEST_P(ExactnessLaw, HoldsAcrossInstructionSets) {
  const std::string base = reference_model(GetParam());
  auto scalar = load(base, 1, 16, Isa::kScalar);
  auto best = load(base, 3, 16, Isa::kBest);
  ASSERT_TRUE(scalar.ok() && best.ok());
  auto prompts = make_prompts(kLengths);
  prompts.resize(14);
  const auto expected = Driver(**scalar, {.name = "scalar"}).run(prompts, kGenerated);
  const auto got = Driver(**best, {.name = "best"}).run(prompts, kGenerated);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    expect_same(got[i], expected[i], fmt::format("prompt {}", i));
}

class ExactnessOnEveryIsa : public ExactnessLaw {};

TEST_P(ExactnessOnEveryIsa, HoldsInEveryMode) { check_every_isa(reference_model(GetParam())); }

class ExactnessOfFormatsOnEveryIsa : public ExactnessLaw {};

// One format of each way to read codes.
TEST_P(ExactnessOfFormatsOnEveryIsa, HoldsInEveryMode) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("model.gguf");
  for (const FormatId format :
       {FormatId::Q8_0, FormatId::Q4_K, FormatId::Q6_K, FormatId::IQ3_XXS, FormatId::BF16}) {
    SCOPED_TRACE(format_name(format));
    const Status status = testing::reencode_model(reference_model(GetParam()), format, path);
    ASSERT_TRUE(status.ok()) << status.message();
    check_every_isa(path, kFewLengthsOfFormats);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExactnessLaw, ::testing::ValuesIn(testing::kReferenceModels),
                         testing::test_name);
INSTANTIATE_TEST_SUITE_P(KindsOfAttention, ExactnessOfCodedCache,
                         ::testing::Values("llama", "gemma3", "gpt-oss", "deepseek2-lite"),
                         testing::test_name);
INSTANTIATE_TEST_SUITE_P(KindsOfLayers, ExactnessOnEveryIsa,
                         ::testing::Values("qwen3moe", "gpt-oss", "deepseek2-lite", "mamba2"),
                         testing::test_name);
INSTANTIATE_TEST_SUITE_P(Dense, ExactnessOfFormatsOnEveryIsa, ::testing::Values("llama"),
                         testing::test_name);
INSTANTIATE_TEST_SUITE_P(DenseAndMixture, ExactnessOfFormats, ::testing::Values("llama", "mixtral"),
                         testing::test_name);

}  // namespace
}  // namespace strata
