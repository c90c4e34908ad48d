#include "bench_peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::apps {
namespace {

using ::testing::HasSubstr;

constexpr BenchTest kPrompt{TestKind::kPrompt, 512};
constexpr BenchTest kDeep{TestKind::kGenerate, 16, 64};
constexpr BenchTest kBatch{TestKind::kGenerate, 16, 64, 4, true};

TEST(BenchPeer, ReadsLlamaBenchWithOrWithoutDepth) {
  EXPECT_EQ(*parse_peer_json(R"([{"n_prompt": 512, "n_gen": 0, "avg_ts": 81.5}])", kPrompt), 81.5);
  EXPECT_EQ(*parse_peer_json("note\n[\n {\"n_prompt\": 0, \"n_gen\": 16, \"n_depth\": 64, "
                             "\"avg_ts\": 8}\n]\n",
                             kDeep),
            8);
  EXPECT_EQ(*parse_peer_json(R"([{"n_prompt": 64, "n_gen": 16, "avg_ts": 7.25}])", kDeep), 7.25);
}

void expect_refusal(const Result<double>& rate, std::string_view words) {
  ASSERT_FALSE(rate.ok());
  EXPECT_THAT(rate.status().message(), HasSubstr(words));
}

TEST(BenchPeer, RefusesWhatIsNoResult) {
  for (const char* text : {"", "[]", "{}", "garbage", "[1]", R"([{"avg_ts": 8}, {"avg_ts": 8}])",
                           R"([{"n_prompt": 512, "n_gen": 0, "avg_ts": 8})"}) {
    SCOPED_TRACE(text);
    expect_refusal(parse_peer_json(text, kPrompt), "no result of this test");
  }
}

TEST(BenchPeer, SaysThatNothingWasWritten) {
  expect_refusal(parse_peer_json("\n", kPrompt), "it wrote nothing");
  expect_refusal(parse_peer_batch(" \n", kBatch), "it wrote nothing");
}

TEST(BenchPeer, RefusesResultsOfAnotherTestWithTheFieldsName) {
  for (const auto& [text, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"([{}])", "`n_prompt` is missing"},
           {R"([{"n_prompt": 512, "avg_ts": 8}])", "`n_gen` is missing"},
           {R"([{"n_prompt": 256, "n_gen": 0, "avg_ts": 8}])", "`n_prompt` is 256 where 512"},
           {R"([{"n_prompt": 512.5, "n_gen": 0, "avg_ts": 8}])", "`n_prompt` is"},
           {R"([{"n_prompt": 512, "n_gen": 1, "avg_ts": 8}])", "`n_gen` is 1 where 0"},
           {R"([{"n_prompt": 512, "n_gen": 0, "n_depth": 9, "avg_ts": 8}])", "`n_depth` is 9"}}) {
    SCOPED_TRACE(text);
    expect_refusal(parse_peer_json(text, kPrompt), words);
  }
}

TEST(BenchPeer, RefusesSpeedsThatNoMachineHasWithTheFieldsName) {
  expect_refusal(parse_peer_json(R"([{"n_prompt": 512, "n_gen": 0}])", kPrompt),
                 "`avg_ts` is missing");
  for (const char* speed : {"\"8\"", "null", "-8", "0", "1e-300", "1e-7", "1e300"}) {
    SCOPED_TRACE(speed);
    expect_refusal(
        parse_peer_json(fmt::format(R"([{{"n_prompt": 512, "n_gen": 0, "avg_ts": {}}}])", speed),
                        kPrompt),
        "avg_ts is '");
    expect_refusal(
        parse_peer_batch(fmt::format(R"({{"pp": 64, "tg": 16, "pl": 4, "speed_tg": {}}})", speed),
                         kBatch),
        "speed_tg is '");
  }
  for (const char* speed : {"nan", "inf", "-5", "0", "1e-300", "1e300", "fast"})
    expect_refusal(
        parse_peer_batch(fmt::format("| 64 | 16 | 4 | 320 | 1 | 1 | 1 | {} | 1 | 1 |", speed),
                         kBatch),
        "S_TG t/s is '");
}

TEST(BenchPeer, ReadsBatchesFromLinesOfJsonAndFromTables) {
  EXPECT_EQ(*parse_peer_batch("loading\n{\"pp\": 64, \"tg\": 16, \"pl\": 4, \"speed_tg\": 30.5}\n",
                              kBatch),
            30.5);
  EXPECT_EQ(*parse_peer_batch(
                "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s | "
                "     T s |    S t/s |\n"
                "|-------|--------|------|--------|----------|----------|----------|----------|-"
                "---------|----------|\n"
                "|    64 |     16 |    2 |    160 |    0.100 |   640.00 |    0.200 |    80.00 | "
                "   0.300 |   533.33 |\n"
                "|    64 |     16 |    4 |    320 |    0.100 |   640.00 |    0.200 |   320.25 | "
                "   0.300 |   533.33 |\n",
                kBatch),
            320.25);
}

TEST(BenchPeer, RefusesBatchesOfOtherSizes) {
  for (const char* text :
       {"", "garbage", "{\"pp\": 64, \"tg\": 16, \"pl\": 8, \"speed_tg\": 30.5}", "{\"pp\": 64",
        "{\"pp\": 64, \"tg\": 16, \"speed_tg\": 30.5}", "| 64 | 16 | 4 | 320 |",
        "| 64 | 16 | 5 | 320 | 1 | 1 | 1 | 30 | 1 | 1 |",
        "64 | 16 | 4 | 320 | 1 | 1 | 1 | 30 | 1 | 1 |"}) {
    SCOPED_TRACE(text);
    expect_refusal(parse_peer_batch(text, kBatch), "no result of this test");
  }
}

TEST(BenchPeer, TakesNoTestsWithoutAProgramForThem) {
  const auto peer = Peer::create({}, "model.gguf", 1, 256);
  ASSERT_TRUE(peer.ok());
  EXPECT_FALSE(peer->takes(kPrompt));
  EXPECT_FALSE(peer->takes(kBatch));
}

}  // namespace
}  // namespace strata::apps
