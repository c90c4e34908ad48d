#include "base/format_id.h"

#include <algorithm>
#include <array>

namespace strata {
namespace {

constexpr std::array kFormats = {
    FormatInfo{FormatId::F32, "F32", 1, 4},
    FormatInfo{FormatId::F16, "F16", 1, 2},
    FormatInfo{FormatId::Q4_0, "Q4_0", 32, 18},
    FormatInfo{FormatId::Q4_1, "Q4_1", 32, 20},
    FormatInfo{FormatId::Q5_0, "Q5_0", 32, 22},
    FormatInfo{FormatId::Q5_1, "Q5_1", 32, 24},
    FormatInfo{FormatId::Q8_0, "Q8_0", 32, 34},
    FormatInfo{FormatId::Q8_1, "Q8_1", 32, 36},
    FormatInfo{FormatId::Q2_K, "Q2_K", 256, 84},
    FormatInfo{FormatId::Q3_K, "Q3_K", 256, 110},
    FormatInfo{FormatId::Q4_K, "Q4_K", 256, 144},
    FormatInfo{FormatId::Q5_K, "Q5_K", 256, 176},
    FormatInfo{FormatId::Q6_K, "Q6_K", 256, 210},
    FormatInfo{FormatId::Q8_K, "Q8_K", 256, 292},
    FormatInfo{FormatId::IQ2_XXS, "IQ2_XXS", 256, 66},
    FormatInfo{FormatId::IQ2_XS, "IQ2_XS", 256, 74},
    FormatInfo{FormatId::IQ3_XXS, "IQ3_XXS", 256, 98},
    FormatInfo{FormatId::IQ1_S, "IQ1_S", 256, 50},
    FormatInfo{FormatId::IQ4_NL, "IQ4_NL", 32, 18},
    FormatInfo{FormatId::IQ3_S, "IQ3_S", 256, 110},
    FormatInfo{FormatId::IQ2_S, "IQ2_S", 256, 82},
    FormatInfo{FormatId::IQ4_XS, "IQ4_XS", 256, 136},
    FormatInfo{FormatId::I8, "I8", 1, 1},
    FormatInfo{FormatId::I16, "I16", 1, 2},
    FormatInfo{FormatId::I32, "I32", 1, 4},
    FormatInfo{FormatId::I64, "I64", 1, 8},
    FormatInfo{FormatId::F64, "F64", 1, 8},
    FormatInfo{FormatId::IQ1_M, "IQ1_M", 256, 56},
    FormatInfo{FormatId::BF16, "BF16", 1, 2},
    FormatInfo{FormatId::TQ1_0, "TQ1_0", 256, 54},
    FormatInfo{FormatId::TQ2_0, "TQ2_0", 256, 66},
    FormatInfo{FormatId::MXFP4, "MXFP4", 32, 17},
    FormatInfo{FormatId::NVFP4, "NVFP4", 64, 36},
};

constexpr std::string_view kRetired =
    "an early type of ggml that nothing reads any more; convert the model anew";
constexpr std::string_view kRepackedQ4 =
    "a type of older llama.cpp for Q4_0 rearranged for some processors; use the model in Q4_0";
constexpr std::string_view kRepackedNl =
    "a type of older llama.cpp for IQ4_NL rearranged for some processors; use the model in IQ4_NL";
constexpr std::string_view kBitNet = "a type of bitnet.cpp; use the model in TQ1_0 or TQ2_0";
constexpr std::string_view kNewer =
    "a type of newer llama.cpp that Strata does not know; use another quantization of the model";
constexpr std::string_view kIk =
    "a type of ik_llama.cpp, not of GGUF; use another quantization of the model";

constexpr std::array kForeign = {
    ForeignType{4, "Q4_2", kRetired},
    ForeignType{5, "Q4_3", kRetired},
    ForeignType{31, "Q4_0_4_4", kRepackedQ4},
    ForeignType{32, "Q4_0_4_8", kRepackedQ4},
    ForeignType{33, "Q4_0_8_8", kRepackedQ4},
    ForeignType{36, "I2_S", kBitNet},
    ForeignType{37, "IQ4_NL_4_8", kRepackedNl},
    ForeignType{38, "IQ4_NL_8_8", kRepackedNl},
    ForeignType{41, "Q1_0", kNewer},
    ForeignType{42, "Q2_0", kNewer},
    ForeignType{97, "Q8_0_X4", kIk},
    ForeignType{98, "Q8_1_X4", kIk},
    ForeignType{99, "Q8_2_X4", kIk},
    ForeignType{133, "Q6_0", kIk},
    ForeignType{134, "IQ1_BN", kIk},
    ForeignType{135, "IQ2_BN", kIk},
    ForeignType{136, "Q8_K64", kIk},
    ForeignType{137, "IQ2_K", kIk},
    ForeignType{138, "IQ3_K", kIk},
    ForeignType{139, "IQ4_K", kIk},
    ForeignType{140, "IQ5_K", kIk},
    ForeignType{141, "IQ6_K", kIk},
    ForeignType{142, "IQ2_TN", kIk},
    ForeignType{143, "IQ1_TN", kIk},
    ForeignType{144, "IQ4_KS", kIk},
    ForeignType{145, "IQ2_KS", kIk},
    ForeignType{146, "IQ4_KSS", kIk},
    ForeignType{147, "Q8_K16", kIk},
    ForeignType{148, "Q8_K32", kIk},
    ForeignType{149, "Q8_KR8", kIk},
    ForeignType{150, "Q8_K128", kIk},
    ForeignType{151, "Q8_KV", kIk},
    ForeignType{152, "IQ5_KS", kIk},
    ForeignType{153, "IQ2_KT", kIk},
    ForeignType{154, "IQ3_KT", kIk},
    ForeignType{155, "IQ4_KT", kIk},
    ForeignType{156, "IQ3_KS", kIk},
    ForeignType{157, "IQ2_KL", kIk},
    ForeignType{158, "IQ1_KT", kIk},
    ForeignType{202, "Q4_0_R8", kIk},
    ForeignType{206, "Q5_0_R4", kIk},
    ForeignType{208, "Q8_0_R8", kIk},
    ForeignType{210, "Q2_K_R4", kIk},
    ForeignType{211, "Q3_K_R4", kIk},
    ForeignType{212, "Q4_K_R4", kIk},
    ForeignType{213, "Q5_K_R4", kIk},
    ForeignType{214, "Q6_K_R4", kIk},
    ForeignType{216, "IQ2_XXS_R4", kIk},
    ForeignType{217, "IQ2_XS_R4", kIk},
    ForeignType{218, "IQ3_XXS_R4", kIk},
    ForeignType{219, "IQ1_S_R4", kIk},
    ForeignType{220, "IQ4_NL_R4", kIk},
    ForeignType{221, "IQ3_S_R4", kIk},
    ForeignType{222, "IQ2_S_R4", kIk},
    ForeignType{223, "IQ4_XS_R8", kIk},
    ForeignType{229, "IQ1_M_R4", kIk},
    ForeignType{230, "BF16_R16", kIk},
    ForeignType{233, "Q6_0_R4", kIk},
    ForeignType{335, "IQ2_BN_R4", kIk},
    ForeignType{337, "IQ2_K_R4", kIk},
    ForeignType{338, "IQ3_K_R4", kIk},
    ForeignType{339, "IQ4_K_R4", kIk},
    ForeignType{340, "IQ5_K_R4", kIk},
    ForeignType{344, "IQ4_KS_R4", kIk},
    ForeignType{352, "IQ5_KS_R4", kIk},
    ForeignType{398, "Q8_KV_R8", kIk},
    ForeignType{399, "Q8_K_R8", kIk},
};

}  // namespace

std::optional<FormatInfo> format_info(std::uint32_t gguf_type) {
  return format_info(static_cast<FormatId>(gguf_type));
}

std::optional<FormatInfo> format_info(FormatId id) {
  const auto* found = std::ranges::find(kFormats, id, &FormatInfo::id);
  if (found == kFormats.end()) return std::nullopt;
  return *found;
}

std::string_view format_name(FormatId id) {
  const auto* found = std::ranges::find(kFormats, id, &FormatInfo::id);
  return found == kFormats.end() ? "unknown format" : found->name;
}

std::optional<FormatId> format_by_name(std::string_view name) {
  const auto* found = std::ranges::find(kFormats, name, &FormatInfo::name);
  if (found == kFormats.end()) return std::nullopt;
  return found->id;
}

std::optional<ForeignType> foreign_type(std::uint32_t gguf_type) {
  const auto* found = std::ranges::find(kForeign, gguf_type, &ForeignType::gguf_type);
  if (found == kForeign.end()) return std::nullopt;
  return *found;
}

}  // namespace strata
