// bert: BERT and its kin (MiniLM, BGE, E5, GTE). Layer norms stand behind each block, positions are
// learned. nomic-bert: Nomic Embed, with rope and a gated feed-forward instead. Either may bring a
// head that scores pairs of texts.
#include "models/bert.h"

#include "models/blocks.h"

namespace strata {
namespace {

Result<TransformerParams> read_encoder_params(const ModelManifest& manifest) {
  STRATA_ASSIGN(TransformerParams p, read_transformer_params(manifest));
  STRATA_ASSIGN(p.causal, manifest.boolean_or("attention.causal", false));
  if (p.causal)
    return unsupported("{} is set: tokens of this architecture see those behind them too",
                       manifest.full_key("attention.causal"));
  return p;
}

constexpr const char* kSegments = "token_types.weight";

// A pair's second text is another segment where the model knows several: no step says which.
Result<bool> read_ranks(const ModelManifest& manifest) {
  STRATA_ASSIGN(const auto pooling, manifest.integer_or("pooling_type", 0, 0, kRankPooling));
  const TensorInfo* segments = manifest.file().find_tensor(kSegments);
  if (pooling == kRankPooling && segments != nullptr && segments->rows() > 1)
    return unsupported(
        "{} is {} (rank) and '{}' has {} rows: models that score pairs of texts are supported "
        "where "
        "both texts are one segment",
        manifest.full_key("pooling_type"), pooling, kSegments, segments->rows());
  return pooling == kRankPooling;
}

ValueId norm(ModelBuilder& model, const TransformerParams& p, const std::string& name, ValueId in) {
  return model.graph().layer_norm(in, model.vector(name + ".weight", p.embedding),
                                  model.vector(name + ".bias", p.embedding), p.epsilon);
}

// The sum of what token, segment and, if they are learned, position are embedded as. A text is all
// one segment, the first.
ValueId embed(ModelBuilder& model, const ModelManifest& manifest, const TransformerParams& p,
              bool learned_positions) {
  GraphBuilder& graph = model.graph();
  const auto x = graph.embed(model.matrix("token_embd.weight", p.vocabulary, p.embedding), 1.0f);
  if (const TensorInfo* segments = manifest.file().find_tensor(kSegments)) {
    const auto rows = static_cast<std::int64_t>(segments->rows());
    graph.add_to(x,
                 graph.embed(model.matrix(kSegments, rows, p.embedding), 1.0f, EmbedIndex::kZero));
  }
  if (learned_positions)
    graph.add_to(x, graph.embed(model.matrix("position_embd.weight", p.context, p.embedding), 1.0f,
                                EmbedIndex::kPosition));
  return norm(model, p, "token_embd_norm", x);
}

// GELU with the error function: what the models were trained with, where the files say nothing.
// Google's BERT code and llama.cpp compute it by tanh, which differs by up to 5e-4.
ValueId gelu_feed_forward(ModelBuilder& model, const TransformerParams& p, std::int32_t layer,
                          ValueId in) {
  GraphBuilder& graph = model.graph();
  const std::int64_t width = p.feed_forward[static_cast<std::size_t>(layer)];
  const auto up = graph.matmul(in, model.linear(layer_tensor(layer, "ffn_up"), width, p.embedding));
  graph.activate(up, UnaryFunction::kGelu);
  return graph.matmul(up, model.linear(layer_tensor(layer, "ffn_down"), p.embedding, width));
}

// One number per wanted row.
ValueId rank_head(ModelBuilder& model, const TransformerParams& p, ValueId rows) {
  GraphBuilder& graph = model.graph();
  const auto dense = graph.matmul(rows, model.linear("cls", p.embedding, p.embedding));
  graph.activate(dense, UnaryFunction::kTanh);
  return graph.matmul(dense, model.linear("cls.output", 1, p.embedding));
}

Result<Graph> build_encoder(const ModelManifest& manifest, bool nomic) {
  STRATA_ASSIGN(const TransformerParams p, read_encoder_params(manifest));
  STRATA_ASSIGN(const bool ranks, read_ranks(manifest));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();
  AttentionBlock attention;
  if (nomic) attention.rope_table = rope_table(model, p.rope);

  auto x = embed(model, manifest, p, !nomic);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto attended = attention_block(model, p, layer, x, attention);
    graph.add_to(attended, x);
    x = norm(model, p, layer_tensor(layer, "attn_output_norm"), attended);
    const auto fed = nomic ? gated_feed_forward(model, p, layer, x, GateFunction::kSilu)
                           : gelu_feed_forward(model, p, layer, x);
    graph.add_to(fed, x);
    x = norm(model, p, layer_tensor(layer, "layer_output_norm"), fed);
  }
  const auto rows = graph.select_logit_rows(x);
  return model.finish(ranks ? rank_head(model, p, rows) : rows);
}

}  // namespace

Result<Graph> build_bert(const ModelManifest& manifest) { return build_encoder(manifest, false); }

Result<Graph> build_nomic_bert(const ModelManifest& manifest) {
  return build_encoder(manifest, true);
}

}  // namespace strata
