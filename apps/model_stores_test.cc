#include "model_stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace strata::apps {
namespace {

using ::testing::ElementsAre;

using Variables = std::map<std::string, std::string>;

std::vector<std::string> folders(const Variables& variables) {
  std::vector<std::string> out;
  for (const Store& store : stores_of([&](const char* name) {
         const auto found = variables.find(name);
         return found == variables.end() ? std::string() : found->second;
       }))
    out.push_back(store.folder);
  return out;
}

TEST(Stores, LieInTheHomeFolder) {
  EXPECT_THAT(
      folders({{"HOME", "/h"}, {"XDG_CACHE_HOME", "relative"}}),
      ElementsAre("/h/.cache/strata/models", "/h/.cache/huggingface/hub", "/h/.ollama/models",
                  "/usr/share/ollama/.ollama/models", "/h/.lmstudio/models",
                  "/h/.cache/lm-studio/models", "/h/.cache/llama.cpp"));
}

TEST(Stores, LieWhereTheVariablesOfTheirProgramsSay) {
  EXPECT_THAT(folders({{"HOME", "/h"},
                       {"XDG_CACHE_HOME", "/x"},
                       {"STRATA_CACHE", "/s"},
                       {"HF_HOME", "/f"},
                       {"OLLAMA_MODELS", "/o"},
                       {"LLAMA_CACHE", "/l"}}),
              ElementsAre("/s/models", "/f/hub", "/o", "/usr/share/ollama/.ollama/models",
                          "/h/.lmstudio/models", "/h/.cache/lm-studio/models", "/l"));
  EXPECT_EQ(folders({{"XDG_CACHE_HOME", "/x"}, {"HF_HUB_CACHE", "/hub"}}).at(1), "/hub");
}

TEST(Stores, WithoutAHomeAreOnlyTheNamedOnes) {
  EXPECT_THAT(folders({}), ElementsAre("/usr/share/ollama/.ollama/models"));
  EXPECT_FALSE(own_folder({{StoreKind::kOllama, "/o"}}).ok());
}

}  // namespace
}  // namespace strata::apps
