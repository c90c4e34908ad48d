#include "hub/stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "hub/sha256.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDigest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

class Stores : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / fmt::format("stores_{}", ::getpid());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, std::string_view text = "GGUF") const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::vector<Store> stores() const {
    return {{StoreKind::kStrata, (root_ / "strata").string()},
            {StoreKind::kHuggingFace, (root_ / "hf").string()},
            {StoreKind::kOllama, (root_ / "ollama").string()},
            {StoreKind::kLmStudio, (root_ / "lm").string()},
            {StoreKind::kLlamaCpp, (root_ / "llama").string()}};
  }
  StoredModels list() const { return list_models(stores()); }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const StoredModel& model : list().models)
      out.push_back(fmt::format("{}: {}", to_string(model.store), model.name));
    return out;
  }

  // The path that a name leads to, inside the test's folder, or the error.
  std::string path_of(std::string_view query, Naming naming = Naming::kFull) const {
    const auto chosen = choose_model(list().models, query, naming);
    return chosen.ok() ? fs::path(chosen->path).lexically_relative(root_).string()
                       : chosen.status().message();
  }

  void write_manifest(const std::string& path, const std::string& digest) const {
    write("ollama/manifests/" + path,
          fmt::format(R"({{"layers": [{{"mediaType": "application/vnd.ollama.image.template",
                          "digest": "sha256:1"}}, {{"digest": "{}",
                          "mediaType": "application/vnd.ollama.image.model"}}]}})",
                      digest));
  }

  fs::path root_;
};

TEST_F(Stores, FindsTheModelsOfEveryProgram) {
  write("strata/org/repo/a-Q4_0.gguf");
  write("strata/plain.gguf");
  write("hf/models--org--repo/blobs/1");
  write("hf/models--org--repo/refs/main", "c0ffee\n");
  fs::create_directories(root_ / "hf/models--org--repo/snapshots/c0ffee");
  fs::create_symlink("../../blobs/1", root_ / "hf/models--org--repo/snapshots/c0ffee/b.gguf");
  write("hf/models--org--repo/snapshots/0/b.gguf");
  write("hf/models--org--repo/snapshots/0/old.gguf");
  write("hf/datasets--org--data/snapshots/0/c.gguf");
  write("ollama/blobs/sha256-" + std::string(kDigest));
  write_manifest("registry.ollama.ai/library/llama3.2/1b", "sha256:" + std::string(kDigest));
  write_manifest("hf.co/org/repo/Q4_0", "sha256:" + std::string(kDigest));
  write("lm/publisher/repo/d.gguf");
  write("llama/e.gguf");
  EXPECT_THAT(names(),
              ElementsAre("Strata: org/repo/a-Q4_0", "Strata: plain", "Hugging Face: org/repo/b",
                          "Hugging Face: org/repo/old", "Ollama: hf.co/org/repo:Q4_0",
                          "Ollama: llama3.2:1b", "LM Studio: publisher/repo/d", "llama.cpp: e"));
  EXPECT_THAT(list().warnings, IsEmpty());
  EXPECT_EQ(path_of("org/repo/b"), "hf/models--org--repo/snapshots/c0ffee/b.gguf");
  EXPECT_EQ(path_of("llama3.2"), "ollama/blobs/sha256-" + std::string(kDigest));
}

TEST_F(Stores, ASplitModelIsOneModelAndItsPartsGoTogether) {
  write("strata/org/repo/m-00001-of-00002.gguf", "12");
  write("strata/org/repo/m-00002-of-00002.gguf", "345");
  write("strata/org/other/n.gguf");
  const StoredModels stored = list();
  ASSERT_EQ(stored.models.size(), 2u);
  EXPECT_EQ(stored.models[1].name, "org/repo/m");
  EXPECT_EQ(stored.models[1].bytes, 5u);
  EXPECT_EQ(path_of("m"), "strata/org/repo/m-00001-of-00002.gguf");
  ASSERT_TRUE(remove_model(stored.models[1], (root_ / "strata").string()).ok());
  EXPECT_FALSE(fs::exists(root_ / "strata/org/repo"));
  ASSERT_TRUE(remove_model(stored.models[0], (root_ / "strata").string()).ok());
  EXPECT_TRUE(fs::is_empty(root_ / "strata"));
}

TEST_F(Stores, APartAloneHasItsOwnNameAndIsReported) {
  write("strata/good.gguf");
  write("strata/good-00001-of-99999.gguf");
  write("strata/late-00002-of-00003.gguf");
  write("strata/odd-00001-of-00000.gguf");
  EXPECT_THAT(names(), ElementsAre("Strata: good", "Strata: good-00001-of-99999",
                                   "Strata: late-00002-of-00003", "Strata: odd-00001-of-00000"));
  EXPECT_THAT(list().warnings,
              ElementsAre(HasSubstr("one of 99999 parts that are not all there"),
                          HasSubstr("late-00002-of-00003.gguf is one of 3 parts")));
  EXPECT_EQ(path_of("good"), "strata/good.gguf");
  EXPECT_EQ(path_of("good.gguf"), "strata/good.gguf");
  EXPECT_EQ(path_of("good-00001-of-99999"), "strata/good-00001-of-99999.gguf");
  EXPECT_EQ(path_of("good-00001-of-99999.gguf"), "strata/good-00001-of-99999.gguf");
  EXPECT_THAT(path_of("good-00001-of-00002.gguf"), HasSubstr("no such file"));
  write("strata/good-00001-of-99999.gguf.source");
  for (const StoredModel& model : list().models)
    if (model.name != "good") {
      EXPECT_TRUE(remove_model(model, (root_ / "strata").string()).ok()) << model.name;
    }
  EXPECT_THAT(names(), ElementsAre("Strata: good"));
  EXPECT_FALSE(fs::exists(root_ / "strata/good-00001-of-99999.gguf.source"));
}

TEST_F(Stores, EveryNameOfAStoreIsUnique) {
  for (const char* file : {"m.gguf", "m-00001-of-00001.gguf", "n-00001-of-00001.gguf",
                           "n-00001-of-00002.gguf", "n-00002-of-00002.gguf"})
    write(fmt::format("strata/{}", file));
  EXPECT_THAT(names(), ElementsAre("Strata: m", "Strata: m-00001-of-00001",
                                   "Strata: n-00001-of-00001", "Strata: n-00001-of-00002"));
}

TEST_F(Stores, APathNamesTheModelThatTheFileBelongsTo) {
  write("strata/org/m-00001-of-00002.gguf");
  write("strata/org/m-00002-of-00002.gguf");
  write("elsewhere/m.gguf");
  const StoredModels stored = list();
  for (const char* path : {"strata/org/m-00001-of-00002.gguf", "strata/org/m-00002-of-00002.gguf",
                           "strata/../strata/org/m-00001-of-00002.gguf"})
    EXPECT_TRUE(model_at(stored.models, (root_ / path).string())) << path;
  for (const char* path : {"elsewhere/m.gguf", "strata/org", "nowhere"})
    EXPECT_FALSE(model_at(stored.models, (root_ / path).string())) << path;
}

TEST_F(Stores, TheBeginningOfANameDoesWhereItIsEnough) {
  write("strata/SmolLM2-135M-Instruct.Q4_1.gguf");
  write("strata/org/repo/Llama-3-Q4_K_M.gguf");
  write("strata/org/repo/Llama-3.1-Q4_K_M.gguf");
  const auto path = [&](std::string_view query) { return path_of(query, Naming::kShort); };
  for (const char* query : {"smollm2", "SmolLM2-135M-Instruct", "s", "smollm2:Q4_1"})
    EXPECT_EQ(path(query), "strata/SmolLM2-135M-Instruct.Q4_1.gguf") << query;
  EXPECT_EQ(path("llama-3"), "strata/org/repo/Llama-3-Q4_K_M.gguf");
  EXPECT_EQ(path("repo/Llama-3.1"), "strata/org/repo/Llama-3.1-Q4_K_M.gguf");
  EXPECT_THAT(path("llama"), HasSubstr("names 2 models: org/repo/Llama-3-Q4_K_M (Strata), org/"));
  for (const char* query : {"smollm2.gguf", "smollm2:Q8_0", "lm2", "or", "org/rep", "/", ":"})
    EXPECT_THAT(path(query), HasSubstr("no model of that name")) << query;
}

TEST_F(Stores, NamesMayBeShortAsLongAsTheyNameOneModel) {
  write("strata/org/repo/m-Q4_K_M.gguf");
  write("strata/org/repo/m-Q4_K_S.gguf");
  write("strata/org/solo/s.Q8_0.gguf");
  write("strata/org/repo/mmproj-f16.gguf");
  EXPECT_EQ(path_of("m-q4_k_m"), "strata/org/repo/m-Q4_K_M.gguf");
  EXPECT_EQ(path_of("m-Q4_K_M.gguf"), "strata/org/repo/m-Q4_K_M.gguf");
  EXPECT_EQ(path_of("org/repo:Q4_K_S"), "strata/org/repo/m-Q4_K_S.gguf");
  EXPECT_EQ(path_of("solo"), "strata/org/solo/s.Q8_0.gguf");
  EXPECT_EQ(path_of("org/solo:Q8_0"), "strata/org/solo/s.Q8_0.gguf");
  EXPECT_THAT(path_of("org/repo"), HasSubstr("names 2 models: org/repo/m-Q4_K_M (Strata), org"));
  EXPECT_THAT(path_of("org/repo:Q4_K"), HasSubstr("no such file, and no model of that name"));
  EXPECT_THAT(path_of("rep"), HasSubstr("no model of that name"));
  EXPECT_THAT(path_of(""), HasSubstr("name of the model is empty"));
  EXPECT_THAT(path_of("../strata"), HasSubstr("no model of that name"));
}

TEST_F(Stores, StratasOwnModelsComeFirstAndEqualFilesAreOne) {
  write("hf/models--org--one/snapshots/1/m.gguf");
  write("lm/p/one/m.gguf");
  EXPECT_THAT(path_of("m"), HasSubstr("names 2 models: org/one/m (Hugging Face), p/one/m (LM "));
  fs::remove(root_ / "lm/p/one/m.gguf");
  fs::create_symlink(root_ / "hf/models--org--one/snapshots/1/m.gguf", root_ / "lm/p/one/m.gguf");
  EXPECT_EQ(path_of("m"), "hf/models--org--one/snapshots/1/m.gguf");
  write("llama/m.gguf");  // a whole name is no part of another
  EXPECT_EQ(path_of("m"), "llama/m.gguf");
  write("strata/x/m.gguf");
  EXPECT_EQ(path_of("m"), "strata/x/m.gguf");
}

TEST_F(Stores, AnOllamaNameWithoutATagMeansTheLatest) {
  write("ollama/blobs/sha256-" + std::string(kDigest));
  const std::string other(64, '7');
  write("ollama/blobs/sha256-" + other);
  write_manifest("registry.ollama.ai/library/m/latest", "sha256:" + std::string(kDigest));
  write_manifest("registry.ollama.ai/library/m/1b", "sha256:" + other);
  EXPECT_EQ(path_of("m"), "ollama/blobs/sha256-" + std::string(kDigest));
  EXPECT_EQ(path_of("m:1b"), "ollama/blobs/sha256-" + other);
}

TEST_F(Stores, HostileTreesAreHarmless) {
  write("strata/good.gguf");
  fs::create_directories(root_ / "strata/loop");
  fs::create_symlink("..", root_ / "strata/loop/up");
  fs::create_symlink("self.gguf", root_ / "strata/self.gguf");
  fs::create_symlink("nowhere", root_ / "strata/broken.gguf");
  fs::create_directories(root_ / "strata/folder.gguf");
  ASSERT_EQ(::mkfifo((root_ / "strata/pipe.gguf").c_str(), 0600), 0);
  write("strata/1/2/3/4/5/6/7/8/9/deep.gguf");
  write("strata/.hidden/h.gguf");
  write("secret.gguf");
  write("hf/models--a--b/refs/main", "../../../..");
  write("hf/models--a--b/snapshots/1/m.gguf");
  write_manifest("h/n/up/1", "sha256:../../secret.gguf");
  write_manifest("h/n/short/1", "sha256:abc");
  write("ollama/manifests/h/n/no/1", "not JSON");
  write("ollama/manifests/h/n/deep/1", std::string(100'000, '['));
  write("ollama/manifests/h/n/big/1", std::string(2 << 20, ' '));
  EXPECT_THAT(names(), ElementsAre("Strata: good", "Hugging Face: a/b/m"));
  EXPECT_EQ(list().warnings.size(), 5u);
}

TEST_F(Stores, VerifiesFilesThatSayWhatTheirBytesAre) {
  write("strata/new.gguf");
  write("strata/old.gguf");
  write("strata/old.gguf.source", "somewhere\n\n");
  write("ollama/blobs/sha256-" + std::string(kDigest));
  write_manifest("registry.ollama.ai/library/llama3.2/1b", "sha256:" + std::string(kDigest));
  const auto digest = file_sha256((root_ / "strata/new.gguf").string());
  ASSERT_TRUE(digest.ok());
  write("strata/new.gguf.source", fmt::format("somewhere\n\n{}\n", *digest));
  write("hf/models--org--repo/blobs/" + *digest);
  write("hf/models--org--repo/refs/main", "c0ffee\n");
  fs::create_directories(root_ / "hf/models--org--repo/snapshots/c0ffee");
  fs::create_symlink("../../blobs/" + *digest,
                     root_ / "hf/models--org--repo/snapshots/c0ffee/b.gguf");
  std::vector<std::string> found;
  for (const StoredModel& model : list().models)
    found.push_back(fmt::format("{}: {}", model.name, to_string(*verify(model))));
  EXPECT_THAT(found,
              ElementsAre("new: good", "old: unknown", "org/repo/b: good", "llama3.2:1b: damaged"));
}

TEST(OllamaManifest, NeedsOneModelLayerWithADigest) {
  const auto layer = [](const std::string& digest) {
    return R"({"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:)" + digest +
           "\"}";
  };
  const auto manifest = [](const std::string& layers) {
    return parse_ollama_manifest(R"({"layers": [)" + layers + "]}");
  };
  const auto good = manifest("1, " + layer(kDigest));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, kDigest);
  EXPECT_FALSE(manifest("").ok());
  EXPECT_FALSE(manifest(layer(kDigest) + "," + layer(kDigest)).ok());
  EXPECT_FALSE(manifest(layer(std::string(63, '0') + "g")).ok());
  EXPECT_FALSE(parse_ollama_manifest(R"({"layers": 1})").ok());
}

}  // namespace
}  // namespace strata
