#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench_serve_chunk.h"
#include "bench_serve_report.h"

namespace strata::apps {
namespace {

std::vector<double> drawn(std::string_view name, int count) {
  const auto lengths = LengthDistribution::parse(name);
  EXPECT_TRUE(lengths.ok()) << lengths.status().message();
  std::vector<double> out;
  for (int i = 0; i < count; ++i) {
    Draws draws(3, Draws::Use::kPrompt, static_cast<std::uint64_t>(i));
    out.push_back(lengths->draw(draws));
  }
  std::ranges::sort(out);
  return out;
}

TEST(LengthDistribution, DrawsWhatItsNameSays) {
  const auto fixed = drawn("77", 10);
  EXPECT_EQ(fixed, std::vector<double>(10, 77));
  const auto uniform = drawn("uniform:10:19", 20'000);
  for (int length = 10; length <= 19; ++length)
    EXPECT_NEAR(static_cast<double>(std::ranges::count(uniform, length)), 2000, 250) << length;
  EXPECT_EQ(uniform.front(), 10);
  EXPECT_EQ(uniform.back(), 19);
  const auto normal = drawn("lognormal:400:0.5", 20'000);
  EXPECT_NEAR(quantile(normal, 0.5), 400, 8);
  EXPECT_NEAR(quantile(normal, 0.8413), 400 * std::exp(0.5), 20);
  EXPECT_NEAR(quantile(normal, 0.1587), 400 * std::exp(-0.5), 10);
  EXPECT_EQ(drawn("lognormal:400:2:1000", 1000).back(), 1000);
}

TEST(LengthDistribution, RefusesWhatIsNoLength) {
  for (const char* const name :
       {"", "0", "-3", "nan", "inf", "1e9", "uniform:5", "uniform:9:3", "uniform:0:3",
        "uniform:1:x", "lognormal:5", "lognormal:5:-1", "lognormal:5:nan", "lognormal:5:1:0",
        "lognormal:5:1:2:3", "normal:1:2", "12:13"})
    EXPECT_FALSE(LengthDistribution::parse(name).ok()) << name;
}

TEST(WordList, GivesTextsOfAsManyTokensAsAsked) {
  const std::size_t words = WordList::candidates().size();
  std::vector<double> counts(words, 1);
  counts[3] = 2;
  const WordList whole(counts);
  EXPECT_TRUE(whole.exact());
  Draws draws(1, Draws::Use::kPrompt, 0);
  const std::string text = whole.text(draws, 500);
  EXPECT_EQ(std::ranges::count(text, ' '), 499);
  EXPECT_EQ((" " + text + " ").find(fmt::format(" {} ", WordList::candidates()[3])),
            std::string::npos);
  const WordList halves(std::vector<double>(words, 2.5));
  EXPECT_FALSE(halves.exact());
  EXPECT_EQ(std::ranges::count(halves.text(draws, 500), ' '), 199);
}

TEST(Quantile, LiesBetweenItsNeighbours) {
  std::vector<double> values(101);
  std::iota(values.begin(), values.end(), 0);
  for (const double share : {0.0, 0.5, 0.95, 0.99, 1.0})
    EXPECT_DOUBLE_EQ(quantile(values, share), 100 * share);
  EXPECT_DOUBLE_EQ(quantile({1, 2}, 0.25), 1.25);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
}

TEST(EventReader, GivesTheSameEventsInWhateverPiecesTheyCome) {
  const std::string_view bytes =
      ": comment\n\ndata: {\"a\": 1}\n\nevent: x\r\ndata:two\r\n\r\ndata: [DONE]\n\ndata: open";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    EventReader reader;
    std::vector<std::string> events;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      EXPECT_TRUE(reader.feed(bytes.substr(at, piece),
                              [&](std::string_view data) { events.emplace_back(data); }));
    EXPECT_EQ(events, (std::vector<std::string>{"{\"a\": 1}", "two", "[DONE]"})) << piece;
  }
}

ServeRecord record(std::string group, double start, std::vector<double> events) {
  ServeRecord out;
  out.group = std::move(group);
  out.start = start;
  out.end = events.empty() ? start : events.back();
  out.answer_tokens = static_cast<std::int64_t>(events.size());
  out.events = std::move(events);
  return out;
}

TEST(AnswerChunk, HoldsTheTextOfItsChoices) {
  const auto text_of = [](std::string_view data) {
    const auto chunk = read_chunk(data);
    EXPECT_TRUE(chunk.has_value()) << data;
    return chunk ? chunk->text : "";
  };
  EXPECT_EQ(text_of(R"({"choices":[{"index":0,"text":"a\n\u00e9","logprobs":null}]})"),
            "a\n\u00e9");
  EXPECT_EQ(text_of(R"({"choices":[{"delta":{"role":"assistant","content":"b"},"index":0}]})"),
            "b");
  EXPECT_EQ(text_of(R"({"choices":[{"delta":{"reasoning_content":"c"}}],"usage":null})"), "c");
  const std::string around(10'000, 'x');
  EXPECT_EQ(text_of(R"({"id":")" + around + R"(","choices":[{"text":")" + around + R"("}]})"),
            around);
  for (const char* const empty :
       {"{}", R"({"choices":[]})", R"({"choices":["text"]})", R"({"choices":[{"text":null}]})",
        R"({"text":"a","content":"b"})", R"({"choices":[{"delta":{"content":["a"]}}]})",
        R"({"choices":[{"logprobs":{"text":"a","delta":{"content":"b"}},"delta":"content"}]})",
        R"({"choices":[[[[[[[{"text":"a"}]]]]]]],"more":{"choices":[{"text":"b"}]}})"})
    EXPECT_EQ(text_of(empty), "") << empty;
}

TEST(AnswerChunk, SaysWhatElseIsInIt) {
  const auto plain = read_chunk(R"({"usage":null,"choices":[{"text":"error","usage":{}}]})");
  ASSERT_TRUE(plain.has_value());
  EXPECT_FALSE(plain->says_more || plain->calls_tools);
  for (const char* const more :
       {R"({"error":{"message":"m"}})", R"({"error":null})", R"({"choices":[],"usage":{}})"}) {
    const auto chunk = read_chunk(more);
    EXPECT_TRUE(chunk && chunk->says_more) << more;
  }
  const auto calls = read_chunk(R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})");
  EXPECT_TRUE(calls && calls->calls_tools && calls->text.empty());
}

TEST(AnswerChunk, IsAWholeObject) {
  for (const char* const broken :
       {"", "[]", "1", "\"a\"", "{", R"({"choices":[{"text":"a"}])", R"({"choices":[]} {})",
        R"({"choices":[{"text":"a}]})", R"({"choices":[{"text":a}]})"})
    EXPECT_FALSE(read_chunk(broken).has_value()) << broken;
}

TEST(ServeSummary, CountsTimesTokensAndErrors) {
  ServeRecord good = record("all", 1, {3, 3.5, 4, 5});
  good.answer_tokens = 5;  // two came in one piece
  ServeRecord broken = record("all", 1, {2});
  broken.error = "cut off";
  ServeRecord left = record("all", 2, {6, 7});
  left.left = true;
  const auto limits = GoodLimits::parse("ttft:2000,tpot:500");
  ASSERT_TRUE(limits.ok());
  const ServeSummary summary = summarize("all", {&good, &broken, &left}, *limits);
  EXPECT_EQ(summary.complete, 1);
  EXPECT_EQ(summary.left, 1);
  EXPECT_EQ(summary.good, 1);
  EXPECT_EQ(summary.errors, (std::map<std::string, std::size_t>{{"cut off", 1}}));
  EXPECT_EQ(summary.first_text, (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(summary.between, (std::vector<double>{0.5, 0.5, 1, 1}));
  EXPECT_EQ(summary.per_token, (std::vector<double>{0.5}));
  EXPECT_EQ(summary.whole, (std::vector<double>{4}));
  EXPECT_FALSE(GoodLimits::parse("tpot:499")->met_by(good));
  EXPECT_FALSE(GoodLimits::parse("tpot").ok());
  EXPECT_FALSE(GoodLimits::parse("tpot:-1").ok());
  EXPECT_FALSE(GoodLimits::parse("tpot:inf").ok());
}

TEST(GoodLimits, AreMetByAShareOfTheRequestsThatNobodyLeft) {
  const auto limits = GoodLimits::parse("ttft:2000,e2e:2500.5");
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->json(), (boost::json::object{{"ttft_ms", 2000.0}, {"e2e_ms", 2500.5}}));
  const ServeRecord good = record("all", 1, {3, 3.5});
  const ServeRecord late = record("all", 1, {3, 4});
  ServeRecord broken = record("all", 1, {2});
  broken.error = "cut off";
  ServeRecord left = record("all", 1, {2});
  left.left = true;
  const auto share = [&](const std::vector<const ServeRecord*>& records) {
    return summarize("all", records, *limits).good_share();
  };
  EXPECT_EQ(share({&good, &late, &broken, &left, &good}), 0.5);
  EXPECT_EQ(share({&late, &left}), 0);
  EXPECT_EQ(share({&left}), std::nullopt);
}

TEST(FullLoad, IsTheTimeWithAsManyStreamsAsEver) {
  const FullLoad full = full_load_of(
      {record("all", 0, {1, 2, 3, 4, 5}), record("all", 0, {3, 3.5, 4}), record("all", 0, {9})});
  EXPECT_EQ(full.streams, 2);
  EXPECT_DOUBLE_EQ(full.seconds, 1);
  EXPECT_DOUBLE_EQ(full.tokens, 3);  // at 3.5 one, at 4 two
}

TEST(BurstGaps, AreTheirPhases) {
  const std::vector<ServeRecord> records = {record("steady", 0, {1, 2, 4, 5, 7, 9}),
                                            record("burst", 3, {4, 6})};
  const BurstGaps gaps = burst_gaps(records, {3, 4.5, 6});
  EXPECT_EQ(gaps.before, (std::vector<double>{1}));
  EXPECT_EQ(gaps.prompts, (std::vector<double>{1, 2}));
  EXPECT_EQ(gaps.answers, (std::vector<double>{2}));
}

}  // namespace
}  // namespace strata::apps
