#include "text/tokenizer/pre_tokenizers.h"

#include <algorithm>
#include <array>
#include <utility>

namespace strata {
namespace {

// Patterns are the models' own, with two kinds of change that leave the pieces as they are:
// quantifiers are possessive where backtracking would cost stack or quadratic time, and right-hand
// digit groups, which need a look-ahead over the whole number, are a flag of the stage.

constexpr std::array kGpt2 = {
    SplitStage{R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"}};

constexpr std::array kDefault = {SplitStage{R"([\p{P}$+<=>^~|]+)"}, kGpt2[0],
                                 SplitStage{R"(\p{N}+)"}, SplitStage{R"([0-9][0-9][0-9])"}};

constexpr std::array kFalcon = {SplitStage{R"([\p{P}$+<=>^~|`]+)"}, kGpt2[0],
                                SplitStage{R"([0-9][0-9][0-9])"}};

constexpr std::array kStarcoder = {SplitStage{R"(\p{N})"}, kGpt2[0]};

constexpr std::array kLlama3 = {
    SplitStage{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
               R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

// After Llama 3's rule, runs of blanks fall into powers of two, the largest first.
constexpr std::array kJais2 = {
    kLlama3[0], SplitStage{R"(\A(?!\s++\z)(?s:.++)|\A(?s:.*)[\r\n]\z|\s{512}|\s{256}|\s{128})"
                           R"(|\s{64}|\s{32}|\s{16}|\s{8}|\s{4}|\s{1,2})"}};

constexpr std::array kQwen2 = {
    SplitStage{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
               R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

constexpr std::array kQwen35 = {
    SplitStage{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
               R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

constexpr std::array kUfakzeka = {
    SplitStage{R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
               R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

constexpr std::array kLaguna = {SplitStage{R"([^\n]+|\n+)"}, kQwen2[0]};

constexpr std::array kMinicpm5 = {
    SplitStage{R"(\p{N}{1,3})"},
    SplitStage{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)"
               R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

constexpr std::array kSeedCoder = {
    SplitStage{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
               R"(| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

constexpr std::array kBailing = {
    SplitStage{R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N})"
               R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}};

constexpr std::array kExaoneMoe = {SplitStage{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}};

constexpr std::array kGpt4o = {
    SplitStage{R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
               R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
               R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
               R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
               R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

constexpr std::array kTinyAya = {SplitStage{R"(\d++\b)", true}, kGpt4o[0]};

constexpr std::array kTekken = {
    SplitStage{R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
               R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
               R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

constexpr std::array kYoutu = {
    SplitStage{R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+)"
               R"(|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B})"
               R"(\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+)"
               R"(|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)"},
    SplitStage{R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
               R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
               R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
               R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
               R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

// PCRE2 cannot intersect classes: "these letters but not Han" is written as "none of the others".
constexpr std::array kKimiK2 = {
    SplitStage{R"(\p{sc:Han}+)"
               R"(|[^\r\n\p{L}\p{N}]?[^\p{sc:Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}]*)"
               R"([^\p{sc:Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
               R"(|[^\r\n\p{L}\p{N}]?[^\p{sc:Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}]+)"
               R"([^\p{sc:Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
               R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

constexpr std::string_view kDeepSeekWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::array kDeepSeek3 = {SplitStage{R"(\p{N}{1,3})"},
                                   SplitStage{R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)"},
                                   SplitStage{kDeepSeekWords}};

constexpr std::array kSpark = {
    SplitStage{R"(\p{N}{1,3})"}, SplitStage{R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)"},
    SplitStage{R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
               R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)"},
    SplitStage{R"(\p{N})"}};

constexpr std::array kAfmoe = {
    SplitStage{R"(\p{N}++)", true},
    SplitStage{R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{30FF})"
               R"(\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{EFF}\x{1780}-\x{17FF})"
               R"(\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF})"
               R"(\x{1100}-\x{11FF}]+)"},
    SplitStage{kDeepSeekWords}};

constexpr std::array kDeepSeekCoder = {
    SplitStage{R"([\r\n])"}, SplitStage{R"(\s?\p{L}+)"}, SplitStage{R"(\s?\p{P}+)"},
    SplitStage{R"([\x{800}-\x{9FA5}\x{AC00}-\x{D7FF}]+)"}, SplitStage{R"(\p{N})"}};

constexpr std::array kDeepSeekLlm = {
    SplitStage{R"([\r\n])"},
    SplitStage{
        R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF})"
        R"(\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F})"
        R"(\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481})"
        R"(\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
        R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
        R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})"
        R"(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
        R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
        R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
        R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
        R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
        R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
        R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
        R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})"
        R"(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
        R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
        R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)"},
    SplitStage{R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F})"
               R"(\x{3000}-\x{3002}]+)"},
    SplitStage{R"((?<!\s)\s++\z)"},
    SplitStage{R"([\x{800}-\x{9FA5}\x{AC00}-\x{D7FF}]+)"},
    SplitStage{R"(\p{N}+)"}};

constexpr std::array kPoro = {
    SplitStage{R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)"}};

constexpr std::array kViking = {kPoro[0], SplitStage{R"(\p{N})"}};

constexpr std::array kChameleon = {
    SplitStage{R"(<sentinel:[0-9]+>)"},    SplitStage{R"(IMGIMG[A-I]{1,4}Z)"},
    SplitStage{R"([\t\n]|    |  )"},       SplitStage{R"(\p{N})"},
    SplitStage{R"([\p{P}!-/:-@\[-`{-~])"}, kGpt2[0]};

constexpr std::array kSuperBpe = {SplitStage{R"(\p{N}+)"}, SplitStage{R"(\d++)", true}};

constexpr std::array kLines = {SplitStage{R"([^\n]+|\n+)"}};

constexpr std::array kWords = {SplitStage{R"(\S+)"}};

constexpr PreTokenizer kDefaultFamily = {.name = "default", .stages = kDefault};

using Entry = std::pair<std::string_view, PreTokenizer>;

constexpr PreTokenizer kGpt2Family = {.name = "gpt-2", .stages = kGpt2};
constexpr PreTokenizer kStarcoderFamily = {.name = "starcoder", .stages = kStarcoder};
constexpr PreTokenizer kLlama3Family = {
    .name = "llama3", .stages = kLlama3, .ignore_merges = true, .add_bos = true};
constexpr PreTokenizer kLlama3Merging = {.name = "llama3, all merged", .stages = kLlama3};
constexpr PreTokenizer kQwen2Family = {.name = "qwen2", .stages = kQwen2};
constexpr PreTokenizer kDeepSeek3Family = {.name = "deepseek-v3", .stages = kDeepSeek3};
constexpr PreTokenizer kGpt4oFamily = {.name = "gpt-4o", .stages = kGpt4o};
constexpr PreTokenizer kTinyAyaFamily = {.name = "tiny_aya", .stages = kTinyAya};
constexpr PreTokenizer kBailingFamily = {.name = "bailingmoe", .stages = kBailing};
constexpr PreTokenizer kPoroFamily = {.name = "poro", .stages = kPoro};
constexpr PreTokenizer kGlm4Family = {.name = "glm4", .stages = kLlama3, .ignore_merges = true};
constexpr PreTokenizer kGemma4Family = {.name = "gemma4",
                                        .stages = kLines,
                                        .add_bos = true,
                                        .always_add_bos = true,
                                        .byte_level = false,
                                        .escape_spaces = true};

constexpr Entry kEntries[] = {
    {"default", kDefaultFamily},
    {"llama3", kLlama3Family},
    {"llama-v3", kLlama3Family},
    {"llama-bpe", kLlama3Family},
    {"falcon3", kLlama3Family},
    {"falcon-h1", kLlama3Family},
    {"pixtral", kLlama3Family},
    {"midm-2.0", kLlama3Family},
    {"lfm2", kLlama3Family},
    {"jina-v5-nano", kLlama3Family},
    {"dbrx", kLlama3Merging},
    {"smaug-bpe", kLlama3Merging},
    {"chatglm-bpe", kLlama3Merging},
    {"glm4", kGlm4Family},
    {"glm5", kGlm4Family},
    {"jais-2", {.name = "jais-2", .stages = kJais2}},
    {"minicpm5", {.name = "minicpm5", .stages = kMinicpm5, .ignore_merges = true}},
    {"deepseek-llm", {.name = "deepseek-llm", .stages = kDeepSeekLlm}},
    {"deepseek-coder", {.name = "deepseek-coder", .stages = kDeepSeekCoder}},
    {"deepseek-v3", kDeepSeek3Family},
    {"hunyuan-dense", kDeepSeek3Family},
    {"joyai-llm", kDeepSeek3Family},
    {"hy_v4", kDeepSeek3Family},
    {"spark2_5", {.name = "spark2_5", .stages = kSpark}},
    {"afmoe", {.name = "afmoe", .stages = kAfmoe}},
    {"youtu", {.name = "youtu", .stages = kYoutu, .ignore_merges = true}},
    {"falcon", {.name = "falcon", .stages = kFalcon}},
    {"starcoder", kStarcoderFamily},
    {"refact", kStarcoderFamily},
    {"command-r", kStarcoderFamily},
    {"smollm", kStarcoderFamily},
    {"codeshell", kStarcoderFamily},
    {"exaone", kStarcoderFamily},
    {"minerva-7b", kStarcoderFamily},
    {"mellum2", kStarcoderFamily},
    {"gpt-2", kGpt2Family},
    {"phi-2", kGpt2Family},
    {"mpt", kGpt2Family},
    {"olmo", kGpt2Family},
    {"jais", kGpt2Family},
    {"trillion", kGpt2Family},
    {"granite-docling", kGpt2Family},
    {"exaone4", kGpt2Family},
    {"gigachat", kGpt2Family},
    {"a.x-4.0", kGpt2Family},
    {"mellum", kGpt2Family},
    {"modern-bert", kGpt2Family},
    {"roberta-bpe", kGpt2Family},
    {"jina-es", kGpt2Family},
    {"jina-de", kGpt2Family},
    {"jina-v1-en", kGpt2Family},
    {"jina-v2-es", kGpt2Family},
    {"jina-v2-de", kGpt2Family},
    {"jina-v2-code", kGpt2Family},
    {"stablelm2", kQwen2Family},
    {"qwen2", kQwen2Family},
    {"deepseek-r1-qwen", kQwen2Family},
    {"kormo", kQwen2Family},
    {"f2llmv2", kQwen2Family},
    {"megrez", kQwen2Family},
    {"hunyuan", kQwen2Family},
    {"solar-open", kQwen2Family},
    {"grok-2", kQwen2Family},
    {"qwen35", {.name = "qwen35", .stages = kQwen35}},
    {"ufakzeka", {.name = "ufakzeka", .stages = kUfakzeka}},
    {"laguna", {.name = "laguna", .stages = kLaguna}},
    {"seed-coder", {.name = "seed-coder", .stages = kSeedCoder}},
    {"bailingmoe", kBailingFamily},
    {"bailingmoe2", kBailingFamily},
    {"llada-moe", kBailingFamily},
    {"exaone-moe", {.name = "exaone-moe", .stages = kExaoneMoe}},
    {"gpt-4o", kGpt4oFamily},
    {"llama4", kGpt4oFamily},
    {"kanana2", kGpt4oFamily},
    {"talkie", kGpt4oFamily},
    {"minimax-m2", kGpt4oFamily},
    {"granite-embed-multi-97m",
     {.name = "granite-embed-multi", .stages = kGpt4o, .ignore_merges = true}},
    {"tiny_aya", kTinyAyaFamily},
    {"cohere2moe", kTinyAyaFamily},
    {"tekken", {.name = "tekken", .stages = kTekken, .ignore_merges = true, .add_bos = true}},
    {"kimi-k2", {.name = "kimi-k2", .stages = kKimiK2}},
    {"superbpe", {.name = "superbpe", .stages = kSuperBpe}},
    {"poro-chat", kPoroFamily},
    {"bloom", kPoroFamily},
    {"gpt3-finnish", kPoroFamily},
    {"viking", {.name = "viking", .stages = kViking}},
    {"chameleon", {.name = "chameleon", .stages = kChameleon, .add_bos = true}},
    {"gemma4", kGemma4Family},
    {"granite-embed-multi-311m", kGemma4Family},
    {"sarvam-moe",
     {.name = "sarvam-moe", .stages = kLines, .byte_level = false, .escape_spaces = true}},
    {"whitespace", {.name = "whitespace", .stages = kWords, .byte_level = false}},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kEntries)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kEntries[i].first;
  return names;
}();

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  const auto found =
      std::ranges::find(kEntries, name, [](const Entry& entry) { return entry.first; });
  return found == std::end(kEntries) ? nullptr : &found->second;
}

const PreTokenizer& default_pre_tokenizer() { return kDefaultFamily; }

std::span<const std::string_view> pre_tokenizer_names() { return kNames; }

}  // namespace strata
