// Operations against their definitions in graph/op.h, computed in double, on every ISA.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "device/cpu/cpu_device.h"
#include "device/cpu/isa_select.h"
#include "device/cpu/test_support.h"
#include "graph/builder.h"

namespace strata {
namespace {

using testing::noise;

using Matrix = std::vector<std::vector<double>>;

// Builds a graph whose inputs are rows of embedding tables and reads any value of it back: row i of
// an input belongs to token i, and the value is taken for the logits.
class OpTest : public ::testing::TestWithParam<Isa> {
 protected:
  OpTest()
      : graph_([] {
          Graph header;
          header.architecture = "test";
          header.vocabulary = 1024;  // where no table bounds it
          return header;
        }()) {}

  GraphBuilder& graph() { return graph_; }

  ValueId input(std::int32_t rows, std::int32_t width, const std::vector<float>& data) {
    const auto table = matrix(rows, width, 1, data);
    return graph_.embed(table, 1.0f);
  }
  WeightId matrix(std::int64_t rows, std::int64_t columns, std::int64_t slices,
                  const std::vector<float>& data) {
    return add({"", WeightRole::kMatrix, FormatId::F32, columns, rows, slices}, data);
  }
  WeightId vector(std::int64_t elements, std::int64_t slices, const std::vector<float>& data) {
    return add({"", WeightRole::kVector, FormatId::F32, elements, 1, slices}, data);
  }

  // The value's first `rows` rows, computed at positions from 0 in steps of `chunk` rows.
  Matrix compute(ValueId value, std::int32_t rows, std::int32_t context = 1024,
                 std::int32_t chunk = 1 << 20) {
    auto finished = graph_.finish(graph_.select_logit_rows(value));
    EXPECT_TRUE(finished.ok()) << finished.status().message();
    if (!finished.ok()) return {};
    const Graph graph = std::move(finished).value();
    EXPECT_LE(rows, graph.vocabulary);  // a row is its token
    const StepLimits limits{rows, rows};
    auto device = make_cpu_device({2, GetParam(), true});
    EXPECT_TRUE(device.ok());
    SegmentSpec spec{&graph, views(**device), {}, CacheFormat::kF32, limits, context};
    for (const CacheGroupSpec& group : graph.cache_groups) {
      const Bytes block = cache_block_bytes(group, CacheFormat::kF32);
      buffers_.push_back((*device)->allocate(block * 8).value());
      // Whatever a block holds beyond its tokens must not matter.
      std::memset(buffers_.back().data(), 0xff, block * 8);
      spec.caches.push_back({buffers_.back().data(), block, 8});
    }
    auto segment = (*device)->bind(spec);
    EXPECT_TRUE(segment.ok()) << segment.status().message();
    Matrix out;
    for (std::int32_t first = 0; first < rows; first += chunk)
      run(**device, **segment, graph, first, std::min(chunk, rows - first), out);
    return out;
  }

 private:
  WeightId add(const Weight& weight, const std::vector<float>& data) {
    EXPECT_EQ(static_cast<std::int64_t>(data.size()), weight.columns * weight.rows * weight.slices);
    shapes_.push_back(weight);
    data_.push_back(data);
    return graph_.add_weight(weight);
  }

  std::vector<WeightView> views(Device& device) {
    std::vector<WeightView> views;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const Weight& w = shapes_[i];
      WeightView view{FormatId::F32, w.columns, w.rows, 1, {}};
      buffers_.push_back(device.allocate(data_[i].size() * sizeof(float)).value());
      const auto* source = reinterpret_cast<const std::uint8_t*>(data_[i].data());
      const auto bytes = static_cast<Bytes>(w.columns * w.rows) * sizeof(float);
      for (Bytes slice = 0; slice < static_cast<Bytes>(w.slices); ++slice) {
        std::uint8_t* target = buffers_.back().data() + slice * bytes;
        const std::span part(source + slice * bytes, bytes);
        const Status status =
            w.role == WeightRole::kMatrix
                ? device.prepare(w.format, w.columns, {0, w.rows, w.rows}, part, target)
                : device.prepare_vector(w.format, w.columns, part, target);
        EXPECT_TRUE(status.ok()) << status.message();
        view.pieces.push_back({target, 0, w.rows});
      }
      views.push_back(view);
    }
    return views;
  }

  static void run(Device& device, Segment& segment, const Graph& graph, std::int32_t first,
                  std::int32_t rows, Matrix& out) {
    std::vector<TokenId> tokens;
    std::vector<std::int32_t> logit_rows;
    for (std::int32_t i = 0; i < rows; ++i) tokens.push_back(first + i), logit_rows.push_back(i);
    const std::vector<BlockId> table = {BlockId{3}, BlockId{1}, BlockId{6}, BlockId{0},
                                        BlockId{7}, BlockId{2}, BlockId{5}, BlockId{4}};
    StepSlice slice{0, rows, first, {}};
    slice.block_tables.assign(graph.cache_groups.size(), table);
    const auto logits = device.run(segment, {tokens, {&slice, 1}, logit_rows});
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    const auto width = static_cast<std::size_t>(graph.output_width());
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
      const auto row = logits->subspan(i * width, width);
      out.emplace_back(row.begin(), row.end());
    }
  }

  GraphBuilder graph_;
  std::vector<Weight> shapes_;
  std::vector<std::vector<float>> data_;
  std::vector<Buffer> buffers_;
};

void expect_near(std::span<const double> got, std::span<const double> expected, double tolerance) {
  ASSERT_GE(got.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance) << "element " << i;
}

double at(const std::vector<float>& data, std::int64_t index) {
  return data[static_cast<std::size_t>(index)];
}

TEST_P(OpTest, MatMulOfPartsMultipliesEachPartByItsSlice) {
  const auto x = noise(5 * 12, 1), w = noise(3 * 6 * 4, 2);
  const auto in = input(5, 12, x);
  const auto got = compute(graph().matmul_parts(in, matrix(6, 4, 3, w)), 5);
  for (std::int64_t row = 0; row < 5; ++row) {
    std::vector<double> expected;
    for (std::int64_t part = 0; part < 3; ++part) {
      for (std::int64_t r = 0; r < 6; ++r) {
        double sum = 0;
        for (std::int64_t c = 0; c < 4; ++c)
          sum += at(x, row * 12 + part * 4 + c) * at(w, (part * 6 + r) * 4 + c);
        expected.push_back(sum);
      }
    }
    expect_near(got[static_cast<std::size_t>(row)], expected, 1e-5);
  }
}

TEST_P(OpTest, ConcatTakesPiecesOfEveryPartAndRepeatsThoseWithoutStride) {
  const auto a = noise(3 * 10, 1), b = noise(3 * 4, 2);
  const auto whole = input(3, 10, a), repeated = input(3, 4, b);
  const auto got = compute(graph().concat({{whole, 5, 1, 3}, {repeated, 0, 2, 2}}, 2), 3);
  for (std::int64_t row = 0; row < 3; ++row) {
    std::vector<double> expected;
    for (std::int64_t part = 0; part < 2; ++part) {
      for (std::int64_t i = 1; i < 4; ++i) expected.push_back(at(a, row * 10 + part * 5 + i));
      for (std::int64_t i = 2; i < 4; ++i) expected.push_back(at(b, row * 4 + i));
    }
    expect_near(got[static_cast<std::size_t>(row)], expected, 0);
  }
}

TEST_P(OpTest, RowsAreLookedUpByTokenByPositionOrAlwaysTheFirst) {
  const auto tokens = noise(5 * 4, 1), positions = noise(7 * 4, 2), first = noise(3 * 4, 3);
  const auto sum = graph().embed(matrix(5, 4, 1, tokens), 2.0f);
  graph().add_to(sum, graph().embed(matrix(7, 4, 1, positions), 1.0f, EmbedIndex::kPosition));
  graph().add_to(sum, graph().embed(matrix(3, 4, 1, first), -1.0f, EmbedIndex::kZero));
  const auto got = compute(sum, 5, 1024, 2);
  for (std::int64_t row = 0; row < 5; ++row) {
    std::vector<double> expected;
    for (std::int64_t i = 0; i < 4; ++i)
      expected.push_back(2 * at(tokens, row * 4 + i) + at(positions, row * 4 + i) - at(first, i));
    expect_near(got[static_cast<std::size_t>(row)], expected, 1e-6);
  }
}

TEST_P(OpTest, ANormWithoutWeightsLeavesPartsOfUnitMeanSquare) {
  const auto x = noise(3 * 26, 1, 0.01f);
  const auto value = input(3, 26, x);
  graph().norm_heads(value, std::nullopt, 1e-4f, 2);
  const auto got = compute(value, 3);
  for (std::int64_t row = 0; row < 3; ++row) {
    std::vector<double> expected;
    for (std::int64_t first = row * 26; first < row * 26 + 26; first += 13) {
      double squares = 0;
      for (std::int64_t i = first; i < first + 13; ++i) squares += at(x, i) * at(x, i);
      for (std::int64_t i = first; i < first + 13; ++i)
        expected.push_back(at(x, i) / std::sqrt(squares / 13 + 1e-4));
    }
    expect_near(got[static_cast<std::size_t>(row)], expected, 1e-5);
  }
}

TEST_P(OpTest, AGateOfOneElementServesItsRow) {
  const auto g = noise(4, 1, 3.0f), u = noise(4 * 9, 2);
  const auto gate = input(4, 1, g), up = input(4, 9, u);
  const auto out = graph().gate(gate, up, GateFunction::kSigmoid);
  graph().scale(out, -2.5f);
  const auto got = compute(out, 4);
  for (std::int64_t row = 0; row < 4; ++row) {
    std::vector<double> expected;
    for (std::int64_t i = 0; i < 9; ++i)
      expected.push_back(-2.5 * at(u, row * 9 + i) / (1 + std::exp(-at(g, row))));
    expect_near(got[static_cast<std::size_t>(row)], expected, 1e-5);
  }
}

TEST_P(OpTest, ClampedSwigluFollowsItsFormula) {
  const auto g = noise(3 * 40, 1, 6.0f), u = noise(3 * 40, 2, 6.0f);
  const auto gate = input(3, 40, g), up = input(3, 40, u);
  const auto got = compute(graph().gate(gate, up, GateFunction::kClampedSwiglu), 3);
  for (std::int64_t row = 0; row < 3; ++row) {
    std::vector<double> expected;
    for (std::int64_t i = row * 40; i < row * 40 + 40; ++i) {
      const double x = std::min(at(g, i), 7.0);
      expected.push_back(x / (1 + std::exp(-1.702 * x)) * (std::clamp(at(u, i), -7.0, 7.0) + 1));
    }
    expect_near(got[static_cast<std::size_t>(row)], expected, 5e-5);
  }
}

// The definition of RouteOp for one row: experts and their weights by rank.
struct Choice {
  std::vector<std::int32_t> ids;
  std::vector<double> weights;
};

void softmax(std::vector<double>& x) {
  const double top = *std::ranges::max_element(x);
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v - top);
  for (double& v : x) v /= sum;
}

std::vector<bool> competing(const RouteOp& op, const std::vector<double>& selection) {
  const auto groups = static_cast<std::size_t>(op.groups);
  const std::size_t members = selection.size() / groups;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<double> group(selection.begin() + static_cast<std::ptrdiff_t>(g * members),
                              selection.begin() + static_cast<std::ptrdiff_t>((g + 1) * members));
    std::ranges::sort(group, std::greater());
    double score = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(op.group_best); ++i) score += group[i];
    order.emplace_back(-score, g);
  }
  std::ranges::sort(order);
  std::vector<bool> in(selection.size(), false);
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.groups_used); ++i)
    for (std::size_t m = 0; m < members; ++m) in[order[i].second * members + m] = true;
  return in;
}

Choice route(const RouteOp& op, std::vector<double> p, const std::vector<float>& bias) {
  if (op.function == RouteFunction::kSoftmax) softmax(p);
  if (op.function == RouteFunction::kSigmoid)
    for (double& v : p) v = 1 / (1 + std::exp(-v));
  std::vector<double> selection = p;
  for (std::size_t e = 0; e < bias.size(); ++e) selection[e] += bias[e];
  const auto in = competing(op, selection);
  std::vector<std::pair<double, std::int32_t>> order;
  for (std::size_t e = 0; e < p.size(); ++e)
    if (in[e]) order.emplace_back(-selection[e], static_cast<std::int32_t>(e));
  std::ranges::sort(order);
  Choice choice;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(op.used); ++rank) {
    choice.ids.push_back(order[rank].second);
    choice.weights.push_back(p[static_cast<std::size_t>(order[rank].second)]);
  }
  if (op.function == RouteFunction::kSoftmaxOfChosen) softmax(choice.weights);
  double sum = 0;
  for (const double w : choice.weights) sum += w;
  for (double& w : choice.weights) w *= op.scale / (op.renormalize ? std::max(sum, 0x1p-14) : 1);
  return choice;
}

class RouteTest : public OpTest {
 protected:
  static constexpr std::int32_t kExperts = 12;

  void check(RouteOp op, const std::vector<float>& scores, const std::vector<float>& bias) {
    op.scores = input(4, kExperts, scores);
    if (!bias.empty()) op.bias = vector(kExperts, 1, bias);
    op.used = 4;
    const auto routing = graph().route(op);
    const auto got =
        compute(graph().concat({{routing.ids, 0, 0, 4}, {routing.weights, 0, 0, 4}}, 1), 4);
    for (std::size_t row = 0; row < 4; ++row) {
      const auto first = scores.begin() + static_cast<std::ptrdiff_t>(row * kExperts);
      const Choice expected = route(op, {first, first + kExperts}, bias);
      for (std::size_t rank = 0; rank < 4; ++rank) {
        const auto id = std::bit_cast<std::int32_t>(static_cast<float>(got[row][rank]));
        EXPECT_EQ(id, expected.ids[rank]) << "row " << row << " rank " << rank;
        EXPECT_NEAR(got[row][4 + rank], expected.weights[rank], 1e-6);
      }
    }
  }
};

TEST_P(RouteTest, SoftmaxTakesTheBestAndTheFirstOfEquals) {
  auto scores = noise(4 * kExperts, 1);
  scores[3] = scores[7] = 5.0f;
  RouteOp op;
  op.renormalize = false;
  check(op, scores, {});
}

TEST_P(RouteTest, SoftmaxOfTheChosenAlone) {
  RouteOp op;
  op.function = RouteFunction::kSoftmaxOfChosen;
  op.renormalize = false;
  check(op, noise(4 * kExperts, 2, 3.0f), {});
}

TEST_P(RouteTest, SigmoidChoosesWithBiasWithinTheBestGroupsAndWeighsWithout) {
  RouteOp op;
  op.function = RouteFunction::kSigmoid;
  op.scale = 2.5f;
  op.groups = 4;
  op.groups_used = 2;
  op.group_best = 2;
  check(op, noise(4 * kExperts, 3), noise(kExperts, 4, 2.0f));
}

TEST_P(RouteTest, WeightsThatVanishAreNotDividedByTheirSum) {
  std::vector<float> scores(4 * kExperts, -40.0f);
  RouteOp op;
  op.function = RouteFunction::kSigmoid;
  check(op, scores, {});
}

TEST_P(OpTest, ExpertsAddTheirOwnBias) {
  const auto x = noise(3 * 8, 1), w = noise(4 * 5 * 8, 2), b = noise(4 * 5, 3), s = noise(3 * 4, 4);
  const auto in = input(3, 8, x);
  RouteOp op;
  op.scores = input(3, 4, s);
  op.used = 2;
  op.renormalize = false;
  const auto routing = graph().route(op);
  const GraphBuilder::Linear linear[] = {{matrix(5, 8, 4, w), vector(5, 4, b)}};
  const auto got =
      compute(graph().combine(graph().expert_matmul(in, routing, linear).front(), routing), 3);
  op.experts = 4;
  for (std::int64_t row = 0; row < 3; ++row) {
    const auto first = s.begin() + row * 4;
    const Choice choice = route(op, {first, first + 4}, {});
    std::vector<double> expected(5, 0.0);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const std::int64_t expert = choice.ids[rank];
      for (std::int64_t r = 0; r < 5; ++r) {
        double sum = at(b, expert * 5 + r);
        for (std::int64_t c = 0; c < 8; ++c)
          sum += at(x, row * 8 + c) * at(w, (expert * 5 + r) * 8 + c);
        expected[static_cast<std::size_t>(r)] += choice.weights[rank] * sum;
      }
    }
    expect_near(got[static_cast<std::size_t>(row)], expected, 1e-5);
  }
}

// Frequencies by the definition of RopeTableOp, and the table's row at a position.
std::vector<double> rope_row(const RopeTableOp& op, const std::vector<float>& factors,
                             double position) {
  std::vector<double> row(static_cast<std::size_t>(op.dimensions));
  const std::int32_t pairs = op.dimensions / 2;
  for (std::int32_t i = 0; i < pairs; ++i) {
    double kept = 0;
    if (op.yarn)
      kept = op.yarn->strength *
             (1 - std::clamp((i - op.yarn->low) / std::max(op.yarn->high - op.yarn->low, 0.001),
                             0.0, 1.0));
    const double divisor = factors.empty() ? 1.0 : at(factors, i);
    const double frequency =
        std::pow(op.base, -2.0 * i / op.dimensions) / divisor * (op.scale + (1 - op.scale) * kept);
    row[static_cast<std::size_t>(i)] = op.magnitude * std::cos(position * frequency);
    row[static_cast<std::size_t>(i + pairs)] = op.magnitude * std::sin(position * frequency);
  }
  return row;
}

TEST_P(OpTest, YarnKeepsFastPairsAndScalesSlowOnes) {
  RopeTableOp op;
  op.dimensions = 16;
  op.scale = 0.125;
  op.yarn = YarnRamp{1.0, 5.0, 0.75};
  op.magnitude = 1.2;
  const auto got = compute(graph().rope_table(op), 12);
  for (std::size_t row = 0; row < 12; ++row)
    expect_near(got[row], rope_row(op, {}, static_cast<double>(row)), 1e-6);
}

class RopeFactors : public OpTest {
 protected:
  void check(std::int32_t context, bool beyond) {
    const std::vector<float> near = {1, 1.5f, 2, 3}, far = {2, 4, 8, 16};
    RopeTableOp op;
    op.dimensions = 8;
    op.factors = vector(4, 1, near);
    op.long_factors = vector(4, 1, far);
    op.original_context = 100;
    const auto got = compute(graph().rope_table(op), 8, context);
    for (std::size_t row = 0; row < 8; ++row)
      expect_near(got[row], rope_row(op, beyond ? far : near, static_cast<double>(row)), 1e-6);
  }
};

TEST_P(RopeFactors, ShortOnesWithinTheOriginalContext) { check(100, false); }
TEST_P(RopeFactors, LongOnesBeyondTheOriginalContext) { check(101, true); }

// Attention by its definition: one row, all heads.
struct AttentionCase {
  std::int32_t heads = 9;  // more than one worker takes at a time
  std::int32_t kv_heads = 1;
  std::int32_t head_size = 12;
  std::int32_t value_size = 10;
  std::int32_t window = 0;
  bool sinks = false;
  bool values_in_keys = false;
  bool causal = true;
};

class AttentionTest : public OpTest {
 protected:
  static constexpr std::int32_t kRows = 70;  // two whole cache blocks and a part

  void check(const AttentionCase& c) {
    const std::int32_t q_width = c.heads * c.head_size, k_width = c.kv_heads * c.head_size;
    const auto q = noise(kRows * q_width, 1), k = noise(kRows * k_width, 2),
               v = noise(kRows * c.kv_heads * c.value_size, 3), s = noise(c.heads, 4, 2.0f);
    AttentionOp op;
    op.query = input(kRows, q_width, q);
    op.key = input(kRows, k_width, k);
    if (!c.values_in_keys) op.value = input(kRows, c.kv_heads * c.value_size, v);
    if (c.sinks) op.sinks = vector(c.heads, 1, s);
    op.heads = c.heads;
    op.kv_heads = c.kv_heads;
    op.head_size = c.head_size;
    op.value_size = c.value_size;
    op.window = c.window;
    op.causal = c.causal;
    op.scale = 0.3f;
    const auto got = compute(graph().attention(op), kRows, 1024, c.causal ? 13 : kRows);
    for (std::int64_t row = 0; row < kRows; ++row) {
      std::vector<double> expected;
      for (std::int64_t h = 0; h < c.heads; ++h) {
        const std::int64_t kv = h / (c.heads / c.kv_heads);
        double denominator = c.sinks ? std::exp(at(s, h)) : 0.0;
        std::vector<double> sum(static_cast<std::size_t>(c.value_size), 0.0);
        const std::int64_t first = c.window > 0 ? std::max<std::int64_t>(0, row - c.window + 1) : 0;
        for (std::int64_t p = first; p <= (c.causal ? row : kRows - 1); ++p) {
          const std::int64_t key = p * k_width + kv * c.head_size;
          double dot = 0;
          for (std::int64_t d = 0; d < c.head_size; ++d)
            dot += at(q, row * q_width + h * c.head_size + d) * at(k, key + d);
          const double weight = std::exp(0.3 * dot);
          denominator += weight;
          for (std::int64_t d = 0; d < c.value_size; ++d)
            sum[static_cast<std::size_t>(d)] +=
                weight * (c.values_in_keys ? at(k, key + d)
                                           : at(v, (p * c.kv_heads + kv) * c.value_size + d));
        }
        for (const double x : sum) expected.push_back(x / denominator);
      }
      expect_near(got[static_cast<std::size_t>(row)], expected, 2e-5);
    }
  }
};

TEST_P(AttentionTest, ManyHeadsOnOneKey) { check({}); }
TEST_P(AttentionTest, SinksJoinTheSoftmax) { check({.heads = 8, .kv_heads = 2, .sinks = true}); }
TEST_P(AttentionTest, SinksJoinTheSoftmaxOfAWindow) {
  check({.heads = 8, .kv_heads = 2, .window = 9, .sinks = true});
}
TEST_P(AttentionTest, ValuesAreTheFirstElementsOfKeys) { check({.values_in_keys = true}); }
TEST_P(AttentionTest, WithoutCausalityRowsSeeThoseBehindThem) {
  check({.heads = 8, .kv_heads = 2, .causal = false});
}
TEST_P(AttentionTest, ValuesInKeysWithinAWindow) {
  check({.heads = 10, .kv_heads = 2, .window = 37, .values_in_keys = true});
}

TEST(Validate, RefusesPiecesOutsideTheirValueAndGroupsWithTooFewExperts) {
  const auto build = [](auto add) {
    Graph header;
    GraphBuilder graph(std::move(header));
    const auto table = graph.add_weight({"t", WeightRole::kMatrix, FormatId::F32, 8, 4, 1});
    return graph.finish(graph.select_logit_rows(add(graph, graph.embed(table, 1.0f)))).ok();
  };
  const auto routed = [&](std::int32_t groups, std::int32_t groups_used, std::int32_t group_best) {
    return build([=](GraphBuilder& graph, ValueId x) {
      RouteOp op;
      op.scores = x;
      op.used = 4;
      op.groups = groups;
      op.groups_used = groups_used;
      op.group_best = group_best;
      return graph.route(op).weights;
    });
  };
  const auto sliced = [&](std::int32_t offset, std::int32_t parts) {
    return build([=](GraphBuilder& graph, ValueId x) { return graph.slice(x, offset, 2, parts); });
  };
  EXPECT_TRUE(routed(4, 2, 2));
  EXPECT_FALSE(routed(4, 1, 2));
  EXPECT_FALSE(routed(4, 5, 2));
  EXPECT_FALSE(routed(4, 2, 3));
  EXPECT_FALSE(routed(3, 2, 1));
  EXPECT_TRUE(sliced(2, 2));
  EXPECT_FALSE(sliced(3, 2));
  EXPECT_FALSE(sliced(-1, 1));
}

TEST(Validate, RefusesAWindowThatReachesBothWays) {
  const auto attends = [](std::int32_t window, bool causal) {
    GraphBuilder graph(Graph{});
    const auto table = graph.add_weight({"t", WeightRole::kMatrix, FormatId::F32, 8, 4, 1});
    AttentionOp op;
    op.query = op.key = op.value = graph.embed(table, 1.0f);
    op.heads = op.kv_heads = 1;
    op.head_size = op.value_size = 8;
    op.window = window;
    op.causal = causal;
    return graph.finish(graph.select_logit_rows(graph.attention(op))).ok();
  };
  EXPECT_TRUE(attends(3, true));
  EXPECT_TRUE(attends(0, false));
  EXPECT_FALSE(attends(3, false));
}

std::string isa_name(const ::testing::TestParamInfo<Isa>& info) {
  return (*select_kernels(info.param))->name;
}
INSTANTIATE_TEST_SUITE_P(Isas, OpTest, ::testing::ValuesIn(runnable_isas()), isa_name);
INSTANTIATE_TEST_SUITE_P(Isas, RouteTest, ::testing::ValuesIn(runnable_isas()), isa_name);
INSTANTIATE_TEST_SUITE_P(Isas, RopeFactors, ::testing::ValuesIn(runnable_isas()), isa_name);
INSTANTIATE_TEST_SUITE_P(Isas, AttentionTest, ::testing::ValuesIn(runnable_isas()), isa_name);

}  // namespace
}  // namespace strata
