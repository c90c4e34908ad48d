// Another program's speed at the same tests: llama-bench, llama-batched-bench and their relatives.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench_result.h"

namespace strata::apps {

struct PeerOptions {
  std::string bench;            // path of llama-bench; empty: only batches are compared
  std::string batched;          // path of llama-batched-bench; empty: batches are not
  std::string name;             // of both in reports; empty: their files
  std::string bench_arguments;  // more of them, between spaces
  std::string batched_arguments;
  std::chrono::seconds limit{0};  // of one run
};

class Peer {
 public:
  // Asks both programs what they can do.
  static Result<Peer> create(const PeerOptions& options, std::string model, int threads,
                             std::int32_t step_rows);

  bool takes(const BenchTest& test) const;
  // Tokens/s of one run. REQUIRES: takes(test).
  Result<double> measure(const BenchTest& test) const;

 private:
  Result<double> measure_single(const BenchTest& test) const;
  Result<double> measure_batched(const BenchTest& test) const;
  using Setting = std::pair<const char*, std::int64_t>;
  std::vector<std::string> command(const std::string& program, const std::string& more,
                                   std::initializer_list<Setting> settings) const;

  PeerOptions options_;
  std::string model_;
  int threads_ = 0;
  std::int32_t step_rows_ = 0;
  bool has_depth_ = false;  // else a prompt's tokens stand before a generation's
  bool has_jsonl_ = false;  // else batches come as a table
};

// Of llama-bench's JSON, which must tell of this test alone.
Result<double> parse_peer_json(std::string_view text, const BenchTest& test);
// Of llama-batched-bench's lines of JSON or its table, which some write to standard error.
Result<double> parse_peer_batch(std::string_view text, const BenchTest& test);

}  // namespace strata::apps
