// strata ls and strata rm: the models in the caches.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>

#include "base/memory_ledger.h"
#include "base/printable.h"
#include "commands.h"
#include "gguf/gguf_file.h"
#include "model_stores.h"
#include "options.h"
#include "progress.h"
#include "say.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

// Names of the mixtures that general.file_type numbers (llama.h of llama.cpp, llama_ftype).
constexpr std::string_view kMixtures[] = {
    "F32",    "F16",    "Q4_0",  "Q4_1",    "",       "",       "",       "Q8_0",
    "Q5_0",   "Q5_1",   "Q2_K",  "Q3_K_S",  "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
    "Q5_K_S", "Q5_K_M", "Q6_K",  "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS",
    "IQ1_S",  "IQ4_NL", "IQ3_S", "IQ3_M",   "IQ2_S",  "IQ2_M",  "IQ4_XS", "IQ1_M",
    "BF16",   "",       "",      "",        "TQ1_0",  "TQ2_0",  "MXFP4"};

// The mixture that the file says it is, or else the format that most bytes of its weights have.
std::string main_format(const std::string& path) {
  const auto file = GgufFile::open(path);
  if (!file.ok()) return "unreadable";
  const auto type = file->metadata().get_integer("general.file_type");
  if (type.ok() && *type >= 0 && *type < std::ssize(kMixtures) && !kMixtures[*type].empty())
    return std::string(kMixtures[*type]);
  std::map<FormatId, Bytes> bytes;
  for (const TensorInfo& tensor : file->tensors()) bytes[tensor.format] += tensor.bytes;
  if (bytes.empty()) return "none";
  return std::string(
      format_name(std::ranges::max_element(bytes, {}, [](auto& of) { return of.second; })->first));
}

std::string age_in_words(std::int64_t seconds) {
  constexpr std::pair<std::int64_t, const char*> kUnits[] = {
      {86400 * 365, "year"}, {86400 * 30, "month"}, {86400, "day"}, {3600, "hour"}, {60, "minute"}};
  for (const auto& [length, name] : kUnits)
    if (seconds >= length)
      return fmt::format("{} {}{}", seconds / length, name, seconds / length == 1 ? "" : "s");
  return "just now";
}

json::object as_json(const StoredModel& model, std::int64_t age) {
  return {{"name", replace_invalid_utf8(model.name)},
          {"path", replace_invalid_utf8(model.path)},
          {"bytes", model.bytes},
          {"format", main_format(model.path)},
          {"where", std::string(to_string(model.store))},
          {"modified_at", model.modified_at},
          {"age_seconds", age}};
}

void print_table(const json::array& models) {
  std::size_t width = 4;
  for (const json::value& model : models)
    width = std::max(width, printable(model.at("name").as_string(), 100).size());
  const bool checked = models.front().as_object().contains("condition");
  const auto condition = [&](std::string_view text) {
    return checked ? fmt::format("{:<9}  ", text) : std::string();
  };
  fmt::print("{:<{}}  {:>10}  {:<10}  {:<12}  {}{}\n", "NAME", width, "SIZE", "FORMAT", "WHERE",
             condition("CONDITION"), "AGE");
  for (const json::value& model : models)
    fmt::print("{:<{}}  {:>10}  {:<10}  {:<12}  {}{}\n",
               printable(model.at("name").as_string(), 100), width,
               human_bytes(model.at("bytes").to_number<Bytes>()),
               std::string_view(model.at("format").as_string()),
               std::string_view(model.at("where").as_string()),
               checked ? condition(model.at("condition").as_string()) : "",
               age_in_words(model.at("age_seconds").as_int64()));
}

// Adds to each what its bytes are; returns how many are damaged.
Result<int> verify_all(const std::vector<StoredModel>& stored, json::array& models) {
  Progress progress("checking");
  int damaged = 0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    progress.update(i, stored.size());
    STRATA_ASSIGN(const Condition condition, verify(stored[i]));
    models[i].as_object()["condition"] = json::string(to_string(condition));
    if (condition != Condition::kDamaged) continue;
    ++damaged;
    progress.clear();
    say("warning: {} is damaged: its SHA-256 is not the recorded one; remove it and pull it "
        "again\n",
        printable(stored[i].path));
  }
  return damaged;
}

Result<int> list(bool in_json, bool check) {
  const StoredModels stored = list_models(user_stores());
  for (const std::string& warning : stored.warnings) say("warning: {}\n", warning);
  const std::int64_t time = std::time(nullptr);
  json::array models;
  for (const StoredModel& model : stored.models)
    models.push_back(as_json(model, std::max<std::int64_t>(0, time - model.modified_at)));
  int damaged = 0;
  if (check) {
    STRATA_ASSIGN(damaged, verify_all(stored.models, models));
  }
  if (in_json)
    fmt::print("{}\n", json::serialize(models));
  else if (models.empty())
    say("There are no models yet; strata pull fetches some.\n");
  else
    print_table(models);
  return damaged > 0 ? 1 : 0;
}

Result<StoredModel> model_to_remove(const StoredModels& stored, const std::string& name) {
  auto chosen = choose_model(stored.models, name, Naming::kFull);
  if (chosen.status().code() != StatusCode::kNotFound) return chosen;
  if (auto model = model_at(stored.models, name)) return *std::move(model);
  std::error_code error;
  if (std::filesystem::exists(name, error))
    return invalid_argument("{}: is no model of a cache; if it is to go, delete it yourself",
                            printable(name));
  return not_found("{}: no model has that name; strata ls lists the names", printable(name));
}

Result<int> remove(const std::string& name) {
  const std::vector<Store> stores = user_stores();
  STRATA_ASSIGN(const std::string folder, own_folder(stores));
  const StoredModels stored = list_models(stores);
  STRATA_ASSIGN(const StoredModel model, model_to_remove(stored, name));
  if (model.store != StoreKind::kStrata)
    return invalid_argument(
        "{} lies in the cache of {}, which is not Strata's to remove; use that "
        "program, or delete {}",
        printable(model.name), to_string(model.store), printable(model.path));
  STRATA_TRY(remove_model(model, folder));
  say("Removed {} ({}).\n", printable(model.name), human_bytes(model.bytes));
  return 0;
}

}  // namespace

void add_ls(CLI::App& app, int& exit_code) {
  auto in_json = std::make_shared<bool>(false);
  auto check = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("ls", "List the models in Strata's cache and those of other programs");
  command->add_flag("--json", *in_json, "Print one JSON array");
  command->add_flag("--verify", *check,
                    "Compare every file with the SHA-256 it had when it came: good, damaged or, "
                    "where none is recorded, unknown; ends with 1 where one is damaged");
  set_action(*command, exit_code, [in_json, check] { return list(*in_json, *check); });
}

void add_rm(CLI::App& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("rm", "Remove a model from Strata's cache");
  command->add_option("model", *name, "Its name, as strata ls has it, or its file")->required();
  set_action(*command, exit_code, [name] { return remove(*name); });
}

}  // namespace strata::apps
