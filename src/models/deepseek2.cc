// deepseek2: DeepSeek-V2, V3 and others with latent attention (MLA): keys and values are made of
// one short vector per token. Where the file has attn_k_b and attn_v_b that vector is what the
// cache holds, and queries are mapped to it; with attn_kv_b every head's keys and values are made
// of it.
#include <cmath>

#include "models/blocks.h"

namespace strata {
namespace {

constexpr std::int64_t kMaxRank = 65536;

struct LatentParams {
  std::int32_t query_rank = 0;  // 0: queries are not compressed
  std::int32_t rank = 0;        // of keys and values
  std::int32_t key_size = 0;    // of a head before compression: plain elements, then rotated ones
  std::int32_t value_size = 0;
  std::int32_t rotated = 0;
  std::int32_t plain = 0;
  float scale = 0;
};

// `yarn_log_multiplier`, 0.1 times the model's own, moves YaRN's length of queries and keys from
// the rotated part, where the rope table has it, to whole scores.
Status read_scale(const ModelManifest& manifest, TransformerParams& p, LatentParams& latent) {
  STRATA_ASSIGN(const double stored, manifest.real_or("rope.scaling.yarn_log_multiplier", 0));
  const double multiplier = stored / 0.1;
  const double factor = 1.0 / p.rope.scale;
  if (p.rope.yarn_strength != 0 && multiplier != 0) p.rope.magnitude /= yarn_magnitude(factor, 1.0);
  const double length = p.rope.magnitude * yarn_magnitude(factor, multiplier);
  latent.scale =
      static_cast<float>(length * length / std::sqrt(static_cast<double>(latent.key_size)));
  return {};
}

Result<LatentParams> read_latent(const ModelManifest& manifest, TransformerParams& p) {
  LatentParams latent;
  STRATA_ASSIGN(const auto query, manifest.integer_or("attention.q_lora_rank", 0, 0, kMaxRank));
  STRATA_ASSIGN(const auto rank, manifest.integer("attention.kv_lora_rank", 1, kMaxRank));
  STRATA_ASSIGN(const auto key, manifest.integer_or("attention.key_length_mla", p.key_size,
                                                    p.rope.dimensions + 1, kMaxRank));
  STRATA_ASSIGN(const auto value,
                manifest.integer_or("attention.value_length_mla", p.value_size, 1, kMaxRank));
  STRATA_ASSIGN(const double temperature, manifest.real_or("attention.temperature_scale", 0));
  if (temperature != 0)
    return unsupported("{} is {}; scores that depend on position are not supported",
                       manifest.full_key("attention.temperature_scale"), temperature);
  latent.query_rank = static_cast<std::int32_t>(query);
  latent.rank = static_cast<std::int32_t>(rank);
  latent.key_size = static_cast<std::int32_t>(key);
  latent.value_size = static_cast<std::int32_t>(value);
  latent.rotated = p.rope.dimensions;
  latent.plain = latent.key_size - latent.rotated;
  if (latent.plain < 1)
    return corrupt("keys of {} elements are no longer than the {} rotated ones, {}",
                   latent.key_size, latent.rotated, manifest.full_key("rope.dimension_count"));
  STRATA_TRY(read_scale(manifest, p, latent));
  return latent;
}

class LatentAttention {
 public:
  LatentAttention(ModelBuilder& model, const TransformerParams& params, const LatentParams& latent,
                  ValueId rope_table, std::int32_t layer)
      : model_(model),
        graph_(model.graph()),
        p_(params),
        l_(latent),
        rope_table_(rope_table),
        layer_(layer),
        heads_(static_cast<std::int32_t>(params.heads[static_cast<std::size_t>(layer)])) {}

  ValueId build(ValueId normed) {
    const auto query = queries(normed);
    const auto plain = graph_.slice(query, 0, l_.plain, heads_);
    const auto rotated = rope(graph_.slice(query, l_.plain, l_.rotated, heads_), heads_);

    const auto compressed = graph_.matmul(
        normed, model_.linear(name("attn_kv_a_mqa"), l_.rank + l_.rotated, p_.embedding));
    const auto latent = norm(graph_.slice(compressed, 0, l_.rank), "attn_kv_a_norm", l_.rank);
    const auto key = rope(graph_.slice(compressed, l_.rank, l_.rotated), 1);

    const auto attended = model_.has(name("attn_k_b.weight"))
                              ? attend_latent(plain, rotated, latent, key)
                              : attend_heads(plain, rotated, latent, key);
    return graph_.matmul(attended, model_.linear(name("attn_output"), p_.embedding,
                                                 std::int64_t{heads_} * l_.value_size));
  }

 private:
  std::string name(std::string_view tensor) const { return layer_tensor(layer_, tensor); }

  ValueId norm(ValueId in, std::string_view tensor, std::int32_t width) {
    return graph_.norm(in, model_.vector(name(tensor) + ".weight", width), p_.epsilon);
  }
  ValueId rope(ValueId value, std::int32_t heads) {
    graph_.rope({rope_table_, value, heads, l_.rotated, RopeStyle::kAdjacent});
    return value;
  }

  ValueId queries(ValueId normed) {
    const std::int64_t width = std::int64_t{heads_} * l_.key_size;
    if (l_.query_rank == 0)
      return graph_.matmul(normed, model_.linear(name("attn_q"), width, p_.embedding));
    const auto compressed =
        graph_.matmul(normed, model_.linear(name("attn_q_a"), l_.query_rank, p_.embedding));
    return graph_.matmul(norm(compressed, "attn_q_a_norm", l_.query_rank),
                         model_.linear(name("attn_q_b"), width, l_.query_rank));
  }

  AttentionOp op(ValueId query, ValueId key, ValueId value) const {
    AttentionOp op;
    op.query = query;
    op.key = key;
    op.value = value;
    op.heads = heads_;
    op.causal = p_.causal;
    op.scale = l_.scale;
    op.softcap = p_.attention_softcap;
    return op;
  }

  // One key/value head for all: the latent vector and, behind it, the rotated part of the key.
  ValueId attend_latent(ValueId plain, ValueId rotated, ValueId latent, ValueId key) {
    model_.ignore(name("attn_kv_b.weight"));  // the same matrix as the two below hold
    const auto mapped = graph_.matmul_parts(
        plain, model_.matrix(name("attn_k_b.weight"), l_.rank, l_.plain, heads_));
    const auto query = graph_.concat(
        {{mapped, l_.rank, 0, l_.rank}, {rotated, l_.rotated, 0, l_.rotated}}, heads_);
    const auto keys = graph_.concat({{latent, 0, 0, l_.rank}, {key, 0, 0, l_.rotated}}, 1);
    AttentionOp attention = op(query, keys, ValueId{});
    attention.kv_heads = 1;
    attention.head_size = l_.rank + l_.rotated;
    attention.value_size = l_.rank;
    return graph_.matmul_parts(
        graph_.attention(attention),
        model_.matrix(name("attn_v_b.weight"), l_.value_size, l_.rank, heads_));
  }

  // Every head's own keys and values; the rotated part of the key is the same for all.
  ValueId attend_heads(ValueId plain, ValueId rotated, ValueId latent, ValueId key) {
    const std::int32_t part = l_.plain + l_.value_size;
    const auto both = graph_.matmul(
        latent, model_.linear(name("attn_kv_b"), std::int64_t{heads_} * part, l_.rank));
    const auto query = graph_.concat(
        {{plain, l_.plain, 0, l_.plain}, {rotated, l_.rotated, 0, l_.rotated}}, heads_);
    const auto keys = graph_.concat({{both, part, 0, l_.plain}, {key, 0, 0, l_.rotated}}, heads_);
    AttentionOp attention = op(query, keys, graph_.slice(both, l_.plain, l_.value_size, heads_));
    attention.kv_heads = heads_;
    attention.head_size = l_.key_size;
    attention.value_size = l_.value_size;
    return graph_.attention(attention);
  }

  ModelBuilder& model_;
  GraphBuilder& graph_;
  const TransformerParams& p_;
  const LatentParams& l_;
  const ValueId rope_table_;
  const std::int32_t layer_;
  const std::int32_t heads_;
};

}  // namespace

Result<Graph> build_deepseek2(const ModelManifest& manifest) {
  STRATA_ASSIGN(TransformerParams p, read_transformer_params(manifest));
  STRATA_ASSIGN(const LatentParams latent, read_latent(manifest, p));
  STRATA_ASSIGN(ExpertBlock experts, read_expert_block(manifest, p, {.renormalize = false}));
  STRATA_ASSIGN(auto dense, manifest.integer_or("leading_dense_block_count", 0, 0, p.layers));
  STRATA_ASSIGN(const auto shared, manifest.integer_or("expert_shared_count", 0, 0, 64));
  experts.shared_width = shared * p.expert_feed_forward;
  if (p.experts == 0) dense = p.layers;
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto table = rope_table(model, p.rope);
  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto attention_in = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(x, LatentAttention(model, p, latent, table, layer).build(attention_in));
    const auto ffn_in = layer_norm(model, p, layer, "ffn_norm", x);
    graph.add_to(x, layer < dense ? gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu)
                                  : expert_feed_forward(model, p, layer, ffn_in, experts));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
