#include "run_model.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "base/file.h"
#include "base/printable.h"
#include "model_stores.h"
#include "progress.h"
#include "say.h"

namespace strata::apps {
namespace {

constexpr Bytes kMostTemplateBytes = 4 * kMiB;

Result<std::string> read_template(const std::string& path) {
  STRATA_ASSIGN(const File file, File::open(path));
  if (file.size() > kMostTemplateBytes)
    return invalid_argument("{} is too large for a chat template", printable(path));
  std::string text(file.size(), '\0');
  STRATA_TRY(file.read_exactly(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
  return text;
}

Result<std::optional<ChatTemplate>> find_template(const Metadata& metadata,
                                                  const std::string& template_file) {
  if (!template_file.empty()) {
    STRATA_ASSIGN(const std::string source, read_template(template_file));
    auto made = ChatTemplate::create(source, special_texts(metadata));
    if (!made.ok()) return made.status().with_context(printable(template_file));
    return std::optional(std::move(*made));
  }
  if (!metadata.contains("tokenizer.chat_template")) return std::optional<ChatTemplate>();
  auto made = ChatTemplate::from_metadata(metadata);
  if (!made.ok()) return made.status().with_context("the model's chat template");
  return std::optional(std::move(*made));
}

}  // namespace

Result<TalkingModel> TalkingModel::open(const std::string& name, const std::string& template_file) {
  TalkingModel model;
  STRATA_ASSIGN(const std::string path, find_model(name));
  STRATA_ASSIGN(model.manifest, ModelManifest::open(path));
  const Metadata& metadata = model.manifest->metadata();
  model.name = printable(model.manifest->name(), 80);
  auto tokenizer = Tokenizer::create(metadata);
  if (!tokenizer.ok()) return tokenizer.status().with_context(printable(path));
  model.tokenizer = std::move(*tokenizer);
  STRATA_ASSIGN(model.chat, find_template(metadata, template_file));
  for (const auto warnings : {model.manifest->file().warnings(), model.tokenizer->warnings()})
    for (const std::string& warning : warnings) say("warning: {}\n", printable(warning));
  return model;
}

Status TalkingModel::load(const EngineOptions& options, Interrupts& interrupts) {
  const auto start = std::chrono::steady_clock::now();
  Progress progress("loading");
  auto loaded = Engine::load(std::move(*manifest), options, [&](Bytes done, Bytes total) {
    progress.update(done, total);
    return !interrupts.pressed();
  });
  manifest.reset();
  progress.clear();
  if (!loaded.ok()) return loaded.status();
  engine = std::move(*loaded);
  load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const std::string& note : engine->plan().notes) say("note: {}\n", note);
  if (tokenizer->vocabulary_size() > engine->vocabulary())
    return corrupt("the file names {} tokens but the model computes only {}",
                   tokenizer->vocabulary_size(), engine->vocabulary());
  prompts = std::make_unique<PromptMaker>(*tokenizer, chat ? &*chat : nullptr, engine->context());
  return {};
}

Result<Prompt> TalkingModel::render(const boost::json::array& messages,
                                    std::optional<bool> think) const {
  ChatInputs inputs{{"messages", messages}, {"add_generation_prompt", true}, {"now", local_time()}};
  if (think && !chat->thinking().switched_by.empty()) inputs[chat->thinking().switched_by] = *think;
  return prompts->chat(inputs);
}

Result<Prompt> TalkingModel::plain(std::string_view text, bool control_tokens) const {
  return prompts->text(text, control_tokens);
}

}  // namespace strata::apps
