#include "bench_peer.h"

#include <gtest/gtest.h>

namespace strata::apps {
namespace {

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

TEST(BenchPeer, RefusesWhatTellsOfAnotherTestOrOfNone) {
  for (const char* text :
       {"", "[]", "{}", "garbage", "[1]", "[{}]", R"([{"avg_ts": "8"}])", R"([{"avg_ts": -8}])",
        R"([{"avg_ts": 1e999}])", R"([{"n_prompt": 256, "n_gen": 0, "avg_ts": 8}])",
        R"([{"n_prompt": 512, "n_gen": 1, "avg_ts": 8}])", R"([{"n_prompt": 512.5, "avg_ts": 8}])",
        R"([{"avg_ts": 8}, {"avg_ts": 8}])", R"([{"n_prompt": 512, "n_gen": 0, "avg_ts": 8})"}) {
    const auto rate = parse_peer_json(text, kPrompt);
    ASSERT_FALSE(rate.ok()) << text;
    EXPECT_NE(rate.status().message().find("no result of this test"), std::string::npos);
  }
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
        "{\"pp\": 64, \"tg\": 16, \"pl\": 4}", "| 64 | 16 | 4 | 320 | 1 | 1 | 1 | nan | 1 | 1 |",
        "| 64 | 16 | 4 | 320 | 1 | 1 | 1 | -5 | 1 | 1 |", "| 64 | 16 | 4 | 320 |",
        "| 64 | 16 | 5 | 320 | 1 | 1 | 1 | 30 | 1 | 1 |"})
    EXPECT_FALSE(parse_peer_batch(text, kBatch).ok()) << text;
}

TEST(BenchPeer, TakesNoTestsWithoutAProgramForThem) {
  const auto peer = Peer::create({}, "model.gguf", 1, 256);
  ASSERT_TRUE(peer.ok());
  EXPECT_FALSE(peer->takes(kPrompt));
  EXPECT_FALSE(peer->takes(kBatch));
}

}  // namespace
}  // namespace strata::apps
