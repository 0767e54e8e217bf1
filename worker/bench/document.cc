#include "worker/bench/document.h"

#include <nlohmann/json.hpp>

namespace hooke {
namespace {

using nlohmann::ordered_json;

std::string ValuesName(bool shared) { return shared ? "arena" : "private"; }

ordered_json ToJson(const Topology& topology) {
  return {{"ranks", topology.ranks},
          {"nodes", topology.nodes},
          {"smallest_node", topology.smallest_node},
          {"largest_node", topology.largest_node},
          {"shared_memory", topology.shared_memory},
          {"oversubscribed", topology.oversubscribed}};
}

void AddChoice(ordered_json& json, const Choice& choice) {
  json["algorithm"] = std::string(NameOf(choice.algorithm));
  json["chunk_bytes"] = choice.chunk_bytes;
  json["reason"] = std::string(choice.reason);
}

}  // namespace

std::string TuningDocument(const Topology& topology, const Measured& measured, const Tuning& tuning) {
  ordered_json document = {
      {"topology", ToJson(topology)}, {"cells", measured.cells},        {"cells_planned", measured.cells_planned},
      {"rules", tuning.rules.size()}, {"tuning", FormatTuning(tuning)}, {"measurements", ordered_json::array()}};
  for (const CarrierTime& one : measured.carriers) {
    document["between_nodes"].push_back(
        {{"carrier", std::string(NameOf(one.carrier))}, {"bytes", one.bytes}, {"median_us", one.median_us}});
  }
  for (const Measurement& one : measured.measurements) {
    const Choice by_default = ChooseAlgorithm(topology, {one.operation, one.bytes, one.shared});
    document["measurements"].push_back({{"operation", std::string(NameOf(one.operation))},
                                        {"values", ValuesName(one.shared)},
                                        {"bytes", one.bytes},
                                        {"algorithm", std::string(NameOf(one.choice.algorithm))},
                                        {"chunk_bytes", one.choice.chunk_bytes},
                                        {"drivers", one.choice.drivers},
                                        {"default", SameWay(one.choice, by_default)},
                                        {"median_us", one.median_us},
                                        {"calls", one.calls}});
  }
  return document.dump() + "\n";
}

std::string ExplanationDocument(const Topology& topology, const Tuning& tuning) {
  ordered_json document = {{"topology", ToJson(topology)}, {"choices", ordered_json::array()}};
  for (const ExplainedChoice& one : ListChoices(topology, tuning)) {
    ordered_json choice = {{"operation", std::string(NameOf(one.operation))},
                           {"values", ValuesName(one.shared)},
                           {"bytes_from", one.bytes_from}};
    if (one.rounds_once) choice["of"] = "16-bit sums";
    if (one.bytes_to != TuningRule::kAnyBytes) choice["bytes_to"] = one.bytes_to;
    AddChoice(choice, one.choice);
    if (one.choice.algorithm == Algorithm::kTwoLevel) {
      choice["drivers"] = one.choice.drivers;
      AddChoice(choice["between"], one.between);
    }
    document["choices"].push_back(std::move(choice));
  }
  return document.dump() + "\n";
}

}  // namespace hooke
