// One model written in several ways that mean the same, and what no longer means anything.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "formats/registry.h"
#include "models/all.h"
#include "tests/model_fixture.h"
#include "tests/shared_data.h"

namespace strata {
namespace {

using testing::EditableModel;
using Tensor = EditableModel::Tensor;

class ModelVariants : public ::testing::Test {
 protected:
  void SetUp() override { STRATA_REQUIRE_SHARED_DATA(); }

  static std::string reference(const std::string& name) {
    return (testing::shared_data_root() / "reference" / (name + ".gguf")).string();
  }
  static EditableModel read(const std::string& name) {
    auto model = EditableModel::read(reference(name));
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }

  // Logits of a prompt in the reference mode.
  std::vector<float> logits(const std::string& path, std::int32_t context = 1024) {
    testing::ModelOptions options;
    options.cpu = {2, Isa::kBest, true};
    options.context = context;
    auto model = testing::load_model(path, options);
    EXPECT_TRUE(model.ok()) << model.status().message();
    if (!model.ok()) return {};
    std::vector<TokenId> tokens(60);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i * 37 % 500);
    const auto rows = (*model)->compute(0, tokens);
    EXPECT_TRUE(rows.ok()) << rows.status().message();
    return {rows->values.begin(), rows->values.end()};
  }
  std::vector<float> logits(const EditableModel& model, std::int32_t context = 1024) {
    const std::string path = folder_.path("variant.gguf");
    EXPECT_TRUE(model.write(path).ok());
    return logits(path, context);
  }

  // What building the changed model says.
  Status built(const EditableModel& model) {
    const std::string path = folder_.path("refused.gguf");
    EXPECT_TRUE(model.write(path).ok());
    auto manifest = ModelManifest::open(path);
    EXPECT_TRUE(manifest.ok()) << manifest.status().message();
    return build_graph(*manifest).status();
  }

  testing::TemporaryFolder folder_;
};

std::string block(int layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

void append(std::vector<std::uint8_t>& to, std::span<const std::uint8_t> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

Tensor f32_tensor(const std::string& name, std::vector<std::uint64_t> shape,
                  const std::vector<float>& values) {
  Tensor tensor{name, FormatId::F32, std::move(shape), {}};
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

// Rows of both in each slice, those of the first in front.
Tensor stack(const std::string& name, const Tensor& first, const Tensor& second) {
  Tensor both{name, first.format, first.shape, {}};
  both.shape[1] += second.shape[1];
  const std::size_t slices = first.shape.size() > 2 ? first.shape[2] : 1;
  for (std::size_t slice = 0; slice < slices; ++slice)
    for (const Tensor* part : {&first, &second})
      append(both.bytes,
             std::span(part->bytes)
                 .subspan(slice * part->bytes.size() / slices, part->bytes.size() / slices));
  return both;
}

TEST_F(ModelVariants, FusedProjectionsGiveTheSameBits) {
  EditableModel dense = read("llama");
  for (int layer = 0; dense.file.find_tensor(block(layer, "attn_q.weight")) != nullptr; ++layer) {
    const Tensor query_key = stack("", dense.take(block(layer, "attn_q.weight")),
                                   dense.take(block(layer, "attn_k.weight")));
    dense.tensors.push_back(stack(block(layer, "attn_qkv.weight"), query_key,
                                  dense.take(block(layer, "attn_v.weight"))));
  }
  EXPECT_EQ(logits(dense), logits(reference("llama")));

  EditableModel mixture = read("mixtral");
  for (int layer = 0; mixture.file.find_tensor(block(layer, "attn_q.weight")) != nullptr; ++layer)
    mixture.tensors.push_back(stack(block(layer, "ffn_gate_up_exps.weight"),
                                    mixture.take(block(layer, "ffn_gate_exps.weight")),
                                    mixture.take(block(layer, "ffn_up_exps.weight"))));
  EXPECT_EQ(logits(mixture), logits(reference("mixtral")));
}

// Rows of `parts` equal parts of each matrix in turn, part after part.
Tensor interleave(const std::string& name, std::span<const Tensor> matrices, std::size_t parts) {
  Tensor all{name, matrices[0].format, {matrices[0].shape[0], 0}, {}};
  for (const Tensor& matrix : matrices) all.shape[1] += matrix.shape[1];
  for (std::size_t part = 0; part < parts; ++part)
    for (const Tensor& matrix : matrices) {
      const std::size_t bytes = matrix.bytes.size() / parts;
      append(all.bytes, std::span(matrix.bytes).subspan(part * bytes, bytes));
    }
  return all;
}

// Rows [first, first + count) of a matrix.
Tensor rows_of(const Tensor& matrix, std::size_t first, std::size_t count) {
  Tensor rows{"", matrix.format, {matrix.shape[0], count}, {}};
  const std::size_t row = matrix.bytes.size() / matrix.shape[1];
  append(rows.bytes, std::span(matrix.bytes).subspan(first * row, count * row));
  return rows;
}

TEST_F(ModelVariants, DeltaRulesProjectedByOneMatrixGiveTheSameBits) {
  constexpr std::size_t kKeyHeads = 2, kKeys = 64, kValues = 128;
  EditableModel model = read("qwen3next");
  for (int layer = 0; layer < 3; ++layer) {
    const Tensor qkv = model.take(block(layer, "attn_qkv.weight"));
    const Tensor parts[] = {rows_of(qkv, 0, kKeys), rows_of(qkv, kKeys, kKeys),
                            rows_of(qkv, 2 * kKeys, kValues),
                            model.take(block(layer, "attn_gate.weight"))};
    model.tensors.push_back(interleave(block(layer, "ssm_in.weight"), parts, kKeyHeads));
  }
  EXPECT_EQ(logits(model), logits(reference("qwen3next")));
}

// Per head the rows of the key matrix, transposed, and then those of the value matrix.
Tensor merged_key_value(const std::string& name, const Tensor& key, const Tensor& value) {
  const std::size_t plain = key.shape[0], rank = key.shape[1], heads = key.shape[2];
  const std::size_t value_rows = value.shape[1];
  Tensor both{name, key.format, {rank, heads * (plain + value_rows)}, {}};
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t i = 0; i < plain; ++i)
      for (std::size_t r = 0; r < rank; ++r)
        append(both.bytes, std::span(key.bytes).subspan(2 * ((h * rank + r) * plain + i), 2));
    append(both.bytes,
           std::span(value.bytes).subspan(2 * h * value_rows * rank, 2 * value_rows * rank));
  }
  return both;
}

TEST_F(ModelVariants, LatentAttentionIsTheSameFromOneMatrixForKeysAndValues) {
  EditableModel model = read("deepseek2-lite");
  for (int layer = 0; layer < 2; ++layer)
    model.tensors.push_back(merged_key_value(block(layer, "attn_kv_b.weight"),
                                             model.take(block(layer, "attn_k_b.weight")),
                                             model.take(block(layer, "attn_v_b.weight"))));
  model.set("deepseek2.attention.key_length", 48);
  model.set("deepseek2.attention.value_length", 32);
  model.set("deepseek2.attention.head_count_kv", 4);
  const auto got = logits(model), expected = logits(reference("deepseek2-lite"));
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-3);
}

TEST_F(ModelVariants, LayersThatPredictFurtherTokensAreLeftOut) {
  EditableModel model = read("glm4moe");
  model.set("glm4moe.block_count", 3);
  model.set("glm4moe.nextn_predict_layers", 1);
  model.tensors.push_back(f32_tensor("blk.2.nextn.enorm.weight", {128}, std::vector<float>(128)));
  EXPECT_EQ(logits(model), logits(reference("glm4moe")));
  model.set("glm4moe.nextn_predict_layers", 0);
  EXPECT_FALSE(built(model).ok());
}

TEST_F(ModelVariants, LongRopeGoesByTheContextAsked) {
  const std::vector<float> near(16, 1.0f);
  std::vector<float> far(16);
  std::iota(far.begin(), far.end(), 1.0f);
  EditableModel stretched = read("phi3");
  stretched.tensors.push_back(f32_tensor("rope_freqs.weight", {16}, far));
  EditableModel model = read("phi3");
  model.tensors.push_back(f32_tensor("rope_factors_short.weight", {16}, near));
  model.tensors.push_back(f32_tensor("rope_factors_long.weight", {16}, far));
  model.set("phi3.rope.scaling.original_context_length", 512);
  EXPECT_EQ(logits(model, 512), logits(reference("phi3")));
  EXPECT_EQ(logits(model, 544), logits(stretched));
  EXPECT_NE(logits(model, 544), logits(model, 512));
}

TEST_F(ModelVariants, WindowsListedByLayerAreThoseOfThePeriod) {
  MetadataArray list;
  list.element_type = ValueType::kBool;
  list.count = 3;
  list.numbers = std::string("\1\0\1", 3);
  EditableModel model = read("gemma2");
  model.changed_keys["gemma2.attention.sliding_window_pattern"] = {ValueType::kArray, list};
  EXPECT_EQ(logits(model), logits(reference("gemma2")));
  list.numbers = std::string("\1\1\1", 3);
  model.changed_keys["gemma2.attention.sliding_window_pattern"] = {ValueType::kArray, list};
  EXPECT_NE(logits(model), logits(reference("gemma2")));
}

// The feed-forward networks become single experts, beside shared ones that add nothing.
void use_one_expert(EditableModel& model, const std::string& architecture, int layers) {
  model.set(architecture + ".expert_count", 1);
  model.set(architecture + ".expert_used_count", 1);
  model.set(architecture + ".expert_feed_forward_length", 256);
  model.set(architecture + ".expert_shared_feed_forward_length", 256);
  for (int layer = 0; layer < layers; ++layer) {
    for (const std::string_view part : {"gate", "up", "down"}) {
      Tensor expert = model.take(block(layer, fmt::format("ffn_{}.weight", part)));
      Tensor shared = expert;
      shared.name = block(layer, fmt::format("ffn_{}_shexp.weight", part));
      if (part == "down") std::ranges::fill(shared.bytes, std::uint8_t{0});
      expert.name = block(layer, fmt::format("ffn_{}_exps.weight", part));
      expert.shape.push_back(1);
      model.tensors.push_back(std::move(expert));
      model.tensors.push_back(std::move(shared));
    }
    model.tensors.push_back(
        f32_tensor(block(layer, "ffn_gate_inp.weight"), {128, 1}, std::vector<float>(128, 0.5f)));
  }
}

TEST_F(ModelVariants, AMixtureOfOneExpertIsTheDenseModel) {
  for (const auto& [name, layers] : {std::pair("granitehybrid", 3), std::pair("granite", 2)}) {
    EditableModel model = read(name);
    use_one_expert(model, name, layers);
    EXPECT_EQ(logits(model), logits(reference(name))) << name;
  }
}

TEST_F(ModelVariants, KeysThatChangeTheModelAreNotPassedOver) {
  const auto differs = [&](const std::string& name, const std::string& key, MetadataEntry entry) {
    EditableModel model = read(name);
    model.changed_keys[key] = std::move(entry);
    return logits(model) != logits(reference(name));
  };
  const MetadataEntry half{ValueType::kFloat32, 0.5}, sigmoid{ValueType::kUint32, std::uint64_t{2}};
  EXPECT_TRUE(differs("llama", "llama.attention.scale", half));
  EXPECT_TRUE(differs("llama", "llama.attn_logit_softcapping", half));
  EXPECT_TRUE(differs("llama", "llama.final_logit_softcapping", half));
  EXPECT_TRUE(differs("llama", "llama.rope.scaling.attn_factor", half));
  EXPECT_TRUE(differs("mixtral", "llama.expert_weights_scale", half));
  EXPECT_TRUE(differs("mixtral", "llama.expert_weights_norm", {ValueType::kBool, false}));
  EXPECT_TRUE(differs("qwen3moe", "qwen3moe.expert_gating_func", sigmoid));
  EXPECT_TRUE(differs("granite", "granite.rope.scaling.finetuned", {ValueType::kBool, false}));
  EXPECT_TRUE(
      differs("granitehybrid", "granitehybrid.rope.scaling.finetuned", {ValueType::kBool, true}));
  EXPECT_TRUE(differs("granitehybrid", "granitehybrid.residual_scale", half));
  EXPECT_TRUE(differs("gpt-oss", "gpt-oss.rope.freq_base_swa", {ValueType::kFloat32, 500.0}));
}

TEST_F(ModelVariants, RefusesWhatItCannotCompute) {
  const auto refused = [&](const std::string& name, const std::string& key, MetadataEntry entry) {
    EditableModel model = read(name);
    model.changed_keys[key] = std::move(entry);
    const Status status = built(model);
    EXPECT_NE(status.message().find(key), std::string::npos) << status.message();
    return !status.ok();
  };
  const auto integer = [](std::uint64_t value) { return MetadataEntry{ValueType::kUint32, value}; };
  const auto real = [](double value) { return MetadataEntry{ValueType::kFloat32, value}; };
  EXPECT_TRUE(refused("llama", "llama.rope.scaling.type",
                      {ValueType::kString, std::string_view("dynamic")}));
  EXPECT_TRUE(refused("llama", "llama.rope.scaling.factor", real(-2)));
  EXPECT_TRUE(refused("gpt-oss", "gpt-oss.rope.freq_base", real(1)));
  EXPECT_TRUE(refused("gpt-oss", "gpt-oss.rope.scaling.yarn_beta_fast", real(0)));
  EXPECT_TRUE(refused("glm4moe", "glm4moe.expert_gating_func", integer(4)));
  EXPECT_TRUE(refused("deepseek2-v3", "deepseek2.expert_group_count", integer(3)));
  EXPECT_TRUE(refused("deepseek2-v3", "deepseek2.expert_group_used_count", integer(0)));
  EXPECT_TRUE(refused("deepseek2-v3", "deepseek2.attention.temperature_scale", real(0.1)));
  EXPECT_TRUE(refused("granite", "granite.logit_scale", real(0)));
  EXPECT_TRUE(refused("mamba", "mamba.ssm.state_size", integer(1 << 29)));
  EXPECT_TRUE(refused("mamba", "mamba.ssm.conv_kernel", integer(1)));
  EXPECT_TRUE(refused("mamba2", "mamba2.ssm.time_step_rank", integer(7)));
  EXPECT_TRUE(refused("mamba2", "mamba2.ssm.group_count", integer(3)));
  EXPECT_TRUE(refused("lfm2", "lfm2.shortconv.l_cache", integer(0)));
  EXPECT_TRUE(refused("lfm2", "lfm2.attention.head_count", integer(0)));
  EXPECT_TRUE(refused("nemotron_h", "nemotron_h.attention.head_count", integer(0)));
  EXPECT_TRUE(refused("qwen3next", "qwen3next.attention.value_length", integer(16)));
  EXPECT_TRUE(refused("qwen3next", "qwen3next.expert_count", integer(0)));
}

TEST_F(ModelVariants, RefusesRecurrentTensorsOfAnotherShape) {
  const auto refused = [&](const std::string& name, const std::string& tensor) {
    EditableModel model = read(name);
    Tensor changed = model.take(tensor);
    changed.shape.back() *= 2;
    append(changed.bytes, std::vector(changed.bytes));
    model.tensors.push_back(std::move(changed));
    const Status status = built(model);
    EXPECT_NE(status.message().find(tensor), std::string::npos) << status.message();
    return !status.ok();
  };
  for (const char* part :
       {"ssm_conv1d.weight", "ssm_conv1d.bias", "ssm_a", "ssm_d", "ssm_in.weight", "ssm_x.weight",
        "ssm_dt.weight", "ssm_dt.bias", "ssm_out.weight"})
    EXPECT_TRUE(refused("mamba", block(1, part)));
  for (const char* part : {"ssm_norm.weight", "ssm_a", "ssm_dt.bias", "ssm_conv1d.weight"})
    EXPECT_TRUE(refused("nemotron_h", block(0, part)));
  for (const char* part : {"shortconv.conv.weight", "shortconv.in_proj.weight"})
    EXPECT_TRUE(refused("lfm2", block(0, part)));
  for (const char* part : {"ssm_ba.weight", "attn_gate.weight", "ssm_norm.weight", "ssm_a"})
    EXPECT_TRUE(refused("qwen3next", block(0, part)));
}

}  // namespace
}  // namespace strata
