// What streams of ready chunks cost, from EventBatch to the clients.
#include <mutex>

#include "serve/http/bench_support.h"
#include "serve/http/server.h"

namespace strata::http {
namespace {

void token_streams(benchmark::State& state) {
  const auto streams = static_cast<std::size_t>(state.range(0));
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  std::atomic<std::size_t> started{0};
  auto server = Server::start({}, [&](const HttpRequest&, std::shared_ptr<Exchange> exchange) {
    exchange->start_stream({});
    const std::lock_guard lock(mutex);
    exchanges.push_back(std::move(exchange));
    ++started;
  });
  if (!server.ok()) return state.SkipWithError(server.status().message().c_str());
  const Readers readers((*server)->port(), static_cast<int>(streams));
  if (readers.failed() || !wait_for([&] { return started == streams; }))
    return state.SkipWithError("the clients cannot connect");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the heads are read

  const std::string chunk = "data: {\"choices\":[" + std::string(170, 'x') + "]}\n\n";
  EventBatch batch;
  measure(state, readers, {streams, chunk.size()}, [&] {
    for (const auto& exchange : exchanges) batch.append(*exchange, chunk);
    batch.flush();
  });
}

BENCHMARK(token_streams)->Arg(32)->Arg(256)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace strata::http
