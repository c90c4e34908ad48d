// How much a step reads and multiplies at least, counted from the graph: the measure of a speed.
#pragma once

#include <vector>

#include "device/device.h"
#include "graph/graph.h"

namespace strata::apps {

struct Work {
  double bytes = 0;       // of weights and cache that the step must read
  double operations = 0;  // of the matrix products, a multiply-add being two

  Work& operator+=(const Work& other) {
    bytes += other.bytes;
    operations += other.operations;
    return *this;
  }
};

// The rows of one sequence in a step.
struct SliceShape {
  Position first = 0;
  std::int32_t rows = 0;
  std::int32_t logit_rows = 0;
};

// Counted once per step: every weight that a row of the step needs, of a table the rows looked up,
// and of experts as many as the step's tokens would touch on average if all were equally likely.
// Once per slice: the keys and values, or the state, that any of its rows sees.
class WorkCounter {
 public:
  // REQUIRES: the graph is valid.
  static Result<WorkCounter> create(const Graph& graph, CacheFormat cache_format);

  Work step(std::span<const SliceShape> slices) const;

 private:
  // A term of the sum over the rows of a domain.
  struct PerRow {
    RowDomain domain = RowDomain::kTokens;
    double amount = 0;
  };
  struct Experts {
    double count = 0;
    double bytes = 0;  // of all of them
  };
  struct Cache {
    double token_bytes = 0;  // of a state: all its bytes
    std::int32_t window = 0;
    bool is_state = false;
  };

  void count_products(const Graph& graph);

  std::int32_t experts_used_ = 0;
  double fixed_bytes_ = 0;
  double logit_bytes_ = 0;  // read where a row wants logits
  double token_bytes_ = 0;  // read per token
  std::vector<Experts> experts_;
  std::vector<PerRow> operations_;
  std::vector<Cache> caches_;
};

}  // namespace strata::apps
