// rwkv7: RWKV 7. Every layer mixes time through a state of outer products, and channels through
// squared ReLUs; both see the token before through a shift of their own.
#include "models/blocks.h"

namespace strata {
namespace {

constexpr float kHeadNormEpsilon = 64e-5f;
constexpr std::int64_t kMaxRank = 65536;

// Ranks of the low-rank projections.
struct Ranks {
  std::int64_t decay = 0;
  std::int64_t rate = 0;
  std::int64_t residual = 0;
  std::int64_t gate = 0;
};

Result<Ranks> read_ranks(const ModelManifest& manifest) {
  Ranks ranks;
  STRATA_ASSIGN(ranks.decay, manifest.integer("attention.decay_lora_rank", 1, kMaxRank));
  STRATA_ASSIGN(ranks.rate, manifest.integer("attention.iclr_lora_rank", 1, kMaxRank));
  STRATA_ASSIGN(ranks.residual,
                manifest.integer("attention.value_residual_mix_lora_rank", 1, kMaxRank));
  STRATA_ASSIGN(ranks.gate, manifest.integer("attention.gate_lora_rank", 1, kMaxRank));
  return ranks;
}

class Layer {
 public:
  Layer(ModelBuilder& model, const TransformerParams& params, const Ranks& ranks,
        std::int32_t heads, std::int32_t layer)
      : model_(model),
        graph_(model.graph()),
        p_(params),
        ranks_(ranks),
        heads_(heads),
        layer_(layer) {}

  ValueId norm(ValueId in, std::string_view part) {
    return graph_.layer_norm(in, vector(part), model_.vector(name(part) + ".bias", p_.embedding),
                             p_.epsilon);
  }

  // `first_value`: the values of layer 0, which the others mix in; set by layer 0.
  ValueId time_mix(ValueId in, ValueId& first_value);
  ValueId channel_mix(ValueId in);

 private:
  std::string name(std::string_view part) const { return layer_tensor(layer_, part); }
  WeightId vector(std::string_view part) {
    return model_.table(name(part) + ".weight", 1, p_.embedding);
  }
  ValueId project(ValueId in, std::string_view part, std::int64_t rows, std::int64_t columns) {
    return graph_.matmul(in, {model_.matrix(name(part) + ".weight", rows, columns), std::nullopt});
  }
  // Down to `rank` by the first matrix and up by the second, with a function in between.
  ValueId low_rank(ValueId in, std::string_view down, std::string_view up, std::int64_t rank,
                   std::optional<UnaryFunction> function = std::nullopt) {
    const auto middle = project(in, down, rank, p_.embedding);
    if (function) graph_.activate(middle, *function);
    return project(middle, up, p_.embedding, rank);
  }

  ModelBuilder& model_;
  GraphBuilder& graph_;
  const TransformerParams& p_;
  const Ranks& ranks_;
  const std::int32_t heads_;
  const std::int32_t layer_;
};

ValueId Layer::time_mix(ValueId in, ValueId& first_value) {
  enum { kReceptance, kDecay, kKey, kValue, kRate, kGate, kShifts };
  const std::int64_t width = p_.embedding;
  const auto shifted = graph_.token_shift(
      in, model_.table(name("time_mix_lerp_fused.weight"), kShifts, width), kShifts);
  Rwkv7Op op;
  op.receptance = project(shifted[kReceptance], "time_mix_receptance", width, width);
  op.decay =
      low_rank(shifted[kDecay], "time_mix_w1", "time_mix_w2", ranks_.decay, UnaryFunction::kTanh);
  graph_.activate(op.decay, UnaryFunction::kSigmoid, vector("time_mix_w0"));
  op.key = project(shifted[kKey], "time_mix_key", width, width);
  op.value = project(shifted[kValue], "time_mix_value", width, width);
  if (layer_ == 0) {
    first_value = op.value;
    for (const std::string_view unused : {"time_mix_v0", "time_mix_v1", "time_mix_v2"})
      model_.ignore(name(unused) + ".weight");
  } else {
    const auto share = low_rank(shifted[kValue], "time_mix_v1", "time_mix_v2", ranks_.residual);
    graph_.activate(share, UnaryFunction::kSigmoid, vector("time_mix_v0"));
    op.value = graph_.lerp(op.value, first_value, share);
  }
  op.rate = low_rank(shifted[kRate], "time_mix_a1", "time_mix_a2", ranks_.rate);
  graph_.activate(op.rate, UnaryFunction::kSigmoid, vector("time_mix_a0"));
  const auto gate =
      low_rank(shifted[kGate], "time_mix_g1", "time_mix_g2", ranks_.gate, UnaryFunction::kSigmoid);
  op.removal = vector("time_mix_k_k");
  op.replacement = vector("time_mix_k_a");
  op.bonus_weight = vector("time_mix_r_k");
  op.heads = heads_;
  const auto mixed = graph_.rwkv7(op);
  const auto normed =
      graph_.layer_norm(mixed.out, vector("time_mix_ln"),
                        model_.vector(name("time_mix_ln.bias"), width), kHeadNormEpsilon, heads_);
  graph_.add_to(normed, mixed.bonus);
  return project(graph_.gate(gate, normed, GateFunction::kIdentity), "time_mix_output", width,
                 width);
}

ValueId Layer::channel_mix(ValueId in) {
  const std::int64_t inner = p_.feed_forward[static_cast<std::size_t>(layer_)];
  const auto shifted = graph_.token_shift(in, vector("channel_mix_lerp_k"), 1);
  const auto key = project(shifted[0], "channel_mix_key", inner, p_.embedding);
  graph_.activate(key, UnaryFunction::kReluSquared);
  return project(key, "channel_mix_value", p_.embedding, inner);
}

}  // namespace

Result<Graph> build_rwkv7(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest, LayerMix::kHybrid));
  STRATA_ASSIGN(const Ranks ranks, read_ranks(manifest));
  STRATA_ASSIGN(const auto head_size, manifest.integer("wkv.head_size", 1, p.embedding));
  if (p.embedding % head_size != 0)
    return corrupt("{} is {}, which does not divide the width of {}",
                   manifest.full_key("wkv.head_size"), head_size, p.embedding);
  const auto heads = static_cast<std::int32_t>(p.embedding / head_size);
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();
  const auto norm = [&](ValueId in, const std::string& name) {
    return graph.layer_norm(in, model.vector(name + ".weight", p.embedding),
                            model.vector(name + ".bias", p.embedding), p.epsilon);
  };
  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto x = norm(graph.embed(embedding, 1.0f), "token_embd_norm");
  ValueId first_value;
  for (std::int32_t i = 0; i < p.layers; ++i) {
    Layer layer(model, p, ranks, heads, i);
    graph.add_to(x, layer.time_mix(layer.norm(x, "attn_norm"), first_value));
    graph.add_to(x, layer.channel_mix(layer.norm(x, "attn_norm_2")));
  }
  const auto rows = norm(graph.select_logit_rows(x), "output_norm");
  return model.finish(
      graph.matmul(rows, {model.matrix("output.weight", p.vocabulary, p.embedding), std::nullopt}));
}

}  // namespace strata
