#include "serve/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/shared_data.h"

namespace strata::serve {
namespace {

using strata::testing::reference_path;
using ::testing::HasSubstr;

constexpr Bytes kPlenty = kGiB;  // sanitizers take some of it

ModelFile file(const std::string& name, const std::string& path) {
  ModelFile file;
  file.name = name;
  file.path = path;
  return file;
}

ModelsOptions options(Bytes memory = kPlenty) {
  ModelsOptions options;
  options.files = {file("Alpha", reference_path("llama") + ".gguf"),
                   file("beta:latest", reference_path("llama") + ".gguf"),
                   file("broken", "/nowhere/at/all.gguf")};
  options.engine.memory = memory;
  options.engine.context = 4096;
  options.engine.step_rows = 4096;  // of activations, to be larger than the process grows by itself
  options.engine.threads = 1;
  options.keep_alive = kForever;
  options.sampling = [](const Metadata&, std::int32_t) { return SamplingDefaults(); };
  return options;
}

using Lease = std::shared_ptr<ModelLease>;

Answer<Lease> acquire(Models& models, const std::string& name,
                      std::optional<KeepAlive> keep_alive = std::nullopt) {
  std::promise<Answer<Lease>> promise;
  models.acquire(name, keep_alive,
                 [&](Answer<Lease> answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

ModelState state_of(Models& models, const std::string& name) { return models.find(name)->state; }

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class ModelsTest : public ::testing::Test {
 protected:
  void SetUp() override { STRATA_REQUIRE_REFERENCE("llama"); }
};

TEST_F(ModelsTest, AreFoundByTheNamesThatClientsUse) {
  Models models(options());
  for (const char* const name : {"Alpha", "alpha", "ALPHA:latest", "alp"})
    EXPECT_EQ(models.find(name)->file.name, "Alpha") << name;
  for (const char* const name : {"beta", "beta:latest", "Beta"})
    EXPECT_EQ(models.find(name)->file.name, "beta:latest") << name;
  EXPECT_FALSE(models.find("b").has_value());  // two begin so
  EXPECT_FALSE(models.find("").has_value());
  EXPECT_FALSE(models.find("gamma").has_value());
  EXPECT_EQ(acquire(models, "gamma").status().http_status, 404);
  EXPECT_EQ(acquire(models, "").status().http_status, 400);
  EXPECT_EQ(acquire(models, "").status().field, "model");
}

TEST_F(ModelsTest, AreLoadedOnceForAllWhoWait) {
  Models models(options());
  EXPECT_FALSE(models.starting());
  std::vector<std::promise<Answer<Lease>>> promises(4);
  for (auto& promise : promises)
    models.acquire("alpha", std::nullopt,
                   [&promise](Answer<Lease> answer) { promise.set_value(std::move(answer)); });
  std::vector<Lease> leases;
  for (auto& promise : promises) {
    auto answer = promise.get_future().get();
    ASSERT_TRUE(answer.ok()) << answer.status().message;
    leases.push_back(*answer);
    EXPECT_EQ(&leases.back()->model(), &leases.front()->model());
  }
  EXPECT_EQ(models.find("alpha")->requests, 4);
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kReady);
  leases.clear();
  EXPECT_EQ(models.find("alpha")->requests, 0);
  EXPECT_LT(models.find("alpha")->expires_in, KeepAlive(0));
}

TEST_F(ModelsTest, GoWhenNobodyAsksForThem) {
  Models models(options());
  auto lease = acquire(models, "alpha", KeepAlive(0));
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kReady);
  *lease = nullptr;
  EXPECT_TRUE(eventually([&] { return state_of(models, "alpha") == ModelState::kUnloaded; }));
}

TEST_F(ModelsTest, GoOnDemandBehindTheirLastRequest) {
  Models models(options());
  auto lease = acquire(models, "alpha");
  ASSERT_TRUE(lease.ok());
  ASSERT_TRUE(models.unload("alpha").ok());
  EXPECT_EQ(models.unload("gamma").code(), StatusCode::kNotFound);
  EXPECT_NE(models.unload("beta").message().find("is not loaded"), std::string::npos);
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kReady);
  *lease = nullptr;
  EXPECT_TRUE(eventually([&] { return state_of(models, "alpha") == ModelState::kUnloaded; }));
  EXPECT_TRUE(acquire(models, "alpha").ok());  // and come again
}

TEST_F(ModelsTest, MakeRoomForEachOtherWhereTheyAreIdle) {
  if (STRATA_SLOW) GTEST_SKIP() << "a sanitizer's own memory is in no plan: not tested";
  // What is kept for requests is a share of the budget, so less is needed of a smaller one.
  Bytes need = kPlenty;
  for (int i = 0; i < 3; ++i) {
    Models models(options(need));
    const auto lease = acquire(models, "alpha");
    ASSERT_TRUE(lease.ok()) << lease.status().message;
    need = (*lease)->model().engine().plan().total();
  }
  Models models(options(need + 16 * kMiB));
  auto first = acquire(models, "alpha");
  ASSERT_TRUE(first.ok()) << first.status().message;
  const auto refused = acquire(models, "beta");  // alpha is in use
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.status().is_overload());
  EXPECT_THAT(refused.status().message, HasSubstr("memory"));
  EXPECT_THAT(models.find("beta")->error, HasSubstr("memory"));
  *first = nullptr;
  const auto second = acquire(models, "beta");
  ASSERT_TRUE(second.ok()) << second.status().message;
  EXPECT_EQ(state_of(models, "alpha"), ModelState::kUnloaded);
  EXPECT_EQ(models.find("beta")->error, "");
}

TEST_F(ModelsTest, ThatNeverFitAreNoMatterOfComingAgain) {
  Models models(options(3 * kMiB));
  const auto refused = acquire(models, "alpha");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().http_status, 400);
  EXPECT_THAT(refused.status().message, HasSubstr("Alpha does not fit"));
  EXPECT_THAT(refused.status().message, HasSubstr("the model needs "));
}

TEST_F(ModelsTest, SayWhyTheyCannotBeLoaded) {
  Models models(options());
  const auto refused = acquire(models, "broken");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message, HasSubstr("/nowhere"));
  EXPECT_EQ(state_of(models, "broken"), ModelState::kUnloaded);
  EXPECT_FALSE(models.starting());
}

TEST_F(ModelsTest, OfTheCachesAreLoadedByName) {
  ModelsOptions with_caches = options();
  with_caches.find = [](const std::string& name) -> Result<ModelFile> {
    if (name != "cached") return not_found("no {}", name);
    return file("cached", reference_path("qwen3") + ".gguf");
  };
  Models models(with_caches);
  const auto load = [&](const std::string& name) {
    std::promise<Answer<Lease>> promise;
    models.load(name, [&](Answer<Lease> answer) { promise.set_value(std::move(answer)); });
    return promise.get_future().get();
  };
  EXPECT_EQ(load("absent").status().http_status, 404);
  EXPECT_EQ(acquire(models, "cached").status().http_status, 404);  // only load() looks there
  EXPECT_TRUE(load("cached").ok());
  EXPECT_TRUE(acquire(models, "cached").ok());
}

TEST_F(ModelsTest, EndOnlyBehindTheirLeases) {
  auto models = std::make_unique<Models>(options());
  auto lease = acquire(*models, "alpha");
  ASSERT_TRUE(lease.ok());
  std::atomic<bool> ended{false};
  std::thread ending([&] {
    models.reset();
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(ended);
  *lease = nullptr;
  ending.join();
}

}  // namespace
}  // namespace strata::serve
