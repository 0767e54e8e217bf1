#include "worker/launch/launch_command.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::Contains;
using ::testing::Not;

LaunchOptions Options(MpiFlavour flavour) {
  LaunchOptions options;
  options.flavour = flavour;
  options.mpirun = "/usr/bin/mpirun.x";
  options.ranks = 3;
  options.rank_binary = "/opt/hooke rank";
  options.rank_arguments = {"--start", "/state/g/start"};
  options.session_folder = "/state/g";
  options.memory_folder = "/dev/shm/g";
  options.environment = {"PATH=/usr/bin",  "OMP_NUM_THREADS=64", "HOOKE_TOKEN_FILE=/t",
                         "SLURM_JOB_ID=7", "PMIX_RANK=0",        "OMPI_COMM_WORLD_RANK=0"};
  return options;
}

// The Open MPI command line has every setting that a group needs, and each rank has its own parent-death signal.
TEST(LaunchCommandTest, OpenMpi) {
  LaunchOptions options = Options(MpiFlavour::kOpenMpi);
  options.as_root = true;
  EXPECT_EQ(
      absl::StrJoin(MakeLaunchCommand(options).argv, "|"),
      "/usr/bin/mpirun.x|-n|3|--oversubscribe|--bind-to|none|--tag-output|--allow-run-as-root|--mca|orte_tmpdir_base|/"
      "state/g|"
      "--mca|btl_vader_backing_directory|/dev/shm/g|--mca|osc_sm_backing_directory|/dev/shm/"
      "g|--mca|mpi_yield_when_idle|1|--mca|"
      "btl_tcp_links|4|setpriv|--pdeathsig|KILL|--|/opt/hooke rank|--start|/state/g/start|--threads=1");
}

// The MPICH command line has exactly these words.
TEST(LaunchCommandTest, Mpich) {
  const LaunchCommand command = MakeLaunchCommand(Options(MpiFlavour::kMpich));
  EXPECT_EQ(absl::StrJoin(command.argv, "|"),
            "/usr/bin/mpirun.x|-n|3|-launcher|fork|-prepend-rank|setpriv|--pdeathsig|KILL|--|/opt/hooke "
            "rank|--start|/state/g/start|--threads=1");
  EXPECT_THAT(command.environment, Contains("UCX_POSIX_DIR=/dev/shm/g"));
}

// A rank that is bound to cores starts through the script, which binds it before its program runs. The script has the
// ranks of this node only.
TEST(LaunchCommandTest, BoundRanks) {
  for (const MpiFlavour flavour : {MpiFlavour::kOpenMpi, MpiFlavour::kMpich}) {
    LaunchOptions options = Options(flavour);
    options.rank_script = "/state/g/rank";
    options.rank_folder = "/state/g";
    options.cpus_of_rank = {{2, "0-1,16"}, {3, "4"}};
    EXPECT_THAT(absl::StrJoin(MakeLaunchCommand(options).argv, "|"), testing::EndsWith("|sh|/state/g/rank"));
    EXPECT_EQ(RankScript(options),
              "case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$PMIX_RANK}} in\n"
              "2) taskset -cp '0-1,16' $$ ;;\n"
              "3) taskset -cp '4' $$ ;;\n"
              "esac >/dev/null || echo 'this rank could not be bound to its cores and runs on all' >&2\n"
              "cd '/state/g' || exit 1\n"
              "exec setpriv --pdeathsig KILL -- '/opt/hooke rank' '--start' '/state/g/start' --threads=1\n");
  }
}

// Each rank sees only the GPUs that it was given.
TEST(LaunchCommandTest, GpusOfRanks) {
  LaunchOptions options = Options(MpiFlavour::kOpenMpi);
  options.rank_script = "/state/g/rank";
  options.rank_folder = "/state/g";
  options.gpus_of_rank = {{2, "GPU-a,GPU-b"}, {3, "GPU-c"}};
  EXPECT_THAT(RankScript(options), testing::StartsWith("case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$PMIX_RANK}} in\n"
                                                       "2) export CUDA_VISIBLE_DEVICES='GPU-a,GPU-b' ;;\n"
                                                       "3) export CUDA_VISIBLE_DEVICES='GPU-c' ;;\n"
                                                       "esac\ncd "));
}

LaunchOptions OnTwoNodes(MpiFlavour flavour) {
  LaunchOptions options = Options(flavour);
  options.hosts = {{"10.0.0.1", 2}, {"10.0.0.2", 1}};
  options.remote_agent = "/dev/shm/g/remote";
  options.rank_script = "/state/g/rank";
  options.rank_folder = "/state/g's";
  options.interfaces = {"eth0", "eth1"};
  return options;
}

// For a group on several nodes, mpirun gets the nodes by address and calls our agent. No path of this node is in the
// ranks' command.
TEST(LaunchCommandTest, SeveralNodes) {
  const LaunchCommand open_mpi = MakeLaunchCommand(OnTwoNodes(MpiFlavour::kOpenMpi));
  EXPECT_THAT(absl::StrJoin(open_mpi.argv, "|"),
              testing::EndsWith("|btl_tcp_links|4|--host|10.0.0.1:2,10.0.0.2:1|--map-by|slot|--leave-session-attached|"
                                "--mca|plm|rsh|--mca|plm_rsh_agent|/dev/shm/g/remote|--mca|plm_rsh_no_tree_spawn|1|"
                                "--mca|oob_tcp_if_include|eth0,eth1|sh|-c|exec sh \"$HOOKE_RANK_SCRIPT\""));
  EXPECT_THAT(open_mpi.environment, Contains("HOOKE_RANK_SCRIPT=/state/g/rank"));
  const LaunchCommand mpich = MakeLaunchCommand(OnTwoNodes(MpiFlavour::kMpich));
  EXPECT_EQ(absl::StrJoin(mpich.argv, "|"),
            "/usr/bin/mpirun.x|-n|3|-launcher|ssh|-launcher-exec|/dev/shm/g/remote|-hosts|10.0.0.1:2,10.0.0.2:1|"
            "-genvnone|-prepend-rank|sh|-c|exec sh \"$HOOKE_RANK_SCRIPT\"");
}

// Intel MPI's mpirun gets the ranks of each node one by one, and knows its own node as localhost.
TEST(LaunchCommandTest, SeveralNodesUnderIntelMpi) {
  const LaunchOptions options = OnTwoNodes(MpiFlavour::kIntelMpi);
  const LaunchCommand command = MakeLaunchCommand(options);
  EXPECT_EQ(absl::StrJoin(command.argv, "|"),
            "/usr/bin/mpirun.x|-launcher|ssh|-launcher-exec|/dev/shm/g/remote|-genvnone|-prepend-rank|-iface|eth0|"
            "-n|2|-host|localhost|sh|-c|exec sh \"$HOOKE_RANK_SCRIPT\"|:|"
            "-n|1|-host|10.0.0.2|sh|-c|exec sh \"$HOOKE_RANK_SCRIPT\"");
  for (const char* variable : {"I_MPI_PIN=0", "I_MPI_HYDRA_BRANCH_COUNT=2", "FI_TCP_IFACE=eth0",
                               "I_MPI_SHM_FILE_PREFIX_4K=/dev/shm/g", "HOOKE_RANK_SCRIPT=/state/g/rank"}) {
    EXPECT_THAT(command.environment, Contains(variable));
  }
  const LaunchCommand daemon = *MakeNodeDaemonCommand(
      options, {"--upstream-host", "10.0.0.1", "--launcher-exec", "/elsewhere/remote", "--base-path", "/elsewhere/bin/",
                "--iface", "ib0", "--proxy-id", "1", "/elsewhere/bin//hydra_pmi_proxy", "--usize", "-1"});
  EXPECT_EQ(absl::StrJoin(daemon.argv, "|"),
            "/usr/bin/hydra_bstrap_proxy|--upstream-host|10.0.0.1|--launcher-exec|/dev/shm/g/remote|--base-path|"
            "/usr/bin/|--iface|eth0|--proxy-id|1|/usr/bin/hydra_pmi_proxy|--usize|-1");
  // The daemon starts nothing else, whatever comes from the other node.
  const std::vector<std::vector<std::string>> bad = {
      {}, {"--proxy-id"}, {"--proxy-id", "1"}, {"--proxy-id", "1", "/bin/rm", "hydra_pmi_proxy"}, {"rm", "-rf", "/"}};
  for (const std::vector<std::string>& arguments : bad) {
    EXPECT_EQ(MakeNodeDaemonCommand(options, arguments).status().code(), absl::StatusCode::kInvalidArgument)
        << absl::StrJoin(arguments, " ");
  }
}

// On one node Intel MPI is started as MPICH is.
TEST(LaunchCommandTest, OneNodeUnderIntelMpi) {
  const LaunchCommand intel = MakeLaunchCommand(Options(MpiFlavour::kIntelMpi));
  EXPECT_EQ(intel.argv, MakeLaunchCommand(Options(MpiFlavour::kMpich)).argv);
  EXPECT_THAT(intel.environment, Contains("I_MPI_PIN=0"));
}

// Open MPI gets names in place of IPv6 addresses. The agent's call is turned back into the address.
TEST(LaunchCommandTest, Ipv6Nodes) {
  LaunchOptions options = OnTwoNodes(MpiFlavour::kOpenMpi);
  options.hosts = {{"fd00::1", 2}, {"fd00::2", 1}, {"fd00::3", 1}};
  EXPECT_THAT(absl::StrJoin(MakeLaunchCommand(options).argv, "|"),
              testing::HasSubstr("|--host|localhost:2,240.0.0.1:1,240.0.0.2:1|--map-by|slot|"));
  EXPECT_EQ(AddressOfMpirunName(options.hosts, "240.0.0.2"), "fd00::3");
  EXPECT_EQ(AddressOfMpirunName(options.hosts, "240.0.0.3"), "240.0.0.3");
  options.hosts.resize(1024, {"fd00::9", 1});
  EXPECT_EQ(MpirunNameOf(options.hosts, 1023), "240.0.3.255");
  options.hosts = {{"10.0.0.1", 2}, {"10.0.0.2", 1}};
  EXPECT_EQ(AddressOfMpirunName(options.hosts, "10.0.0.2"), "10.0.0.2");
}

// The ranks of a node get that node's own folders and interfaces.
TEST(LaunchCommandTest, RankScriptOfANode) {
  EXPECT_EQ(RankScript(OnTwoNodes(MpiFlavour::kOpenMpi)),
            "export OMPI_MCA_orte_tmpdir_base='/state/g'\nexport OMPI_MCA_btl_vader_backing_directory='/dev/shm/g'\n"
            "export OMPI_MCA_osc_sm_backing_directory='/dev/shm/g'\n"
            "export OMPI_MCA_btl_tcp_if_include='eth0,eth1'\ncd '/state/g'\\''s' || exit 1\n"
            "exec setpriv --pdeathsig KILL -- '/opt/hooke rank' '--start' '/state/g/start' --threads=1\n");
  EXPECT_THAT(RankScript(OnTwoNodes(MpiFlavour::kMpich)), Not(testing::HasSubstr("export")));
}

// The variable that limits UCX to some devices is set only if the devices are named.
TEST(LaunchCommandTest, DevicesOfUcx) {
  LaunchOptions options = OnTwoNodes(MpiFlavour::kMpich);
  EXPECT_THAT(MakeLaunchCommand(options).environment, Not(Contains(testing::HasSubstr("UCX_NET_DEVICES"))));
  options.ucx_devices = {"mlx5_0:1", "eth0"};
  EXPECT_THAT(MakeLaunchCommand(options).environment, Contains("UCX_NET_DEVICES=mlx5_0:1,eth0"));
}

// The command for the MPI library's daemon on another node starts the program beside this node's mpirun. It has
// mpirun's arguments, but those that name files or devices of mpirun's node are replaced.
TEST(LaunchCommandTest, DaemonOfANode) {
  const LaunchCommand command = *MakeNodeDaemonCommand(
      OnTwoNodes(MpiFlavour::kOpenMpi), {"-mca", "ess", "env", "--mca", "orte_tmpdir_base", "/elsewhere", "-mca",
                                         "oob_tcp_if_include", "ib0", "--mca", "plm", "rsh", "-mca"});
  EXPECT_EQ(absl::StrJoin(command.argv, "|"),
            "/usr/bin/orted|-mca|ess|env|--mca|plm|rsh|-mca|--mca|orte_tmpdir_base|/state/g|--mca|oob_tcp_if_include|"
            "eth0,eth1");
  EXPECT_THAT(command.environment, Contains("HOOKE_RANK_SCRIPT=/state/g/rank"));
  EXPECT_THAT(command.environment, Not(Contains("PMIX_RANK=0")));
}

// Open MPI's flag for root is set only if the caller runs as root.
TEST(LaunchCommandTest, NotAsRoot) {
  EXPECT_THAT(MakeLaunchCommand(Options(MpiFlavour::kOpenMpi)).argv, Not(Contains("--allow-run-as-root")));
}

// Each rank gets its number of threads as a flag too, because the environment alone does not limit its kernels.
TEST(LaunchCommandTest, ThreadsOfARank) {
  LaunchOptions options = Options(MpiFlavour::kMpich);
  options.threads_per_rank = 6;
  EXPECT_EQ(MakeLaunchCommand(options).argv.back(), "--threads=6");
}

// The number of threads replaces the daemon's own setting. Another launcher's variables do not reach this mpirun.
TEST(LaunchCommandTest, Environment) {
  LaunchOptions options = Options(MpiFlavour::kOpenMpi);
  options.threads_per_rank = 2;
  EXPECT_EQ(
      absl::StrJoin(MakeLaunchCommand(options).environment, "|"),
      "PATH=/usr/bin|OMP_NUM_THREADS=2|OPENBLAS_NUM_THREADS=2|MKL_NUM_THREADS=2|TMPDIR=/state/g|HWLOC_COMPONENTS=-gl,"
      "-opencl");
}

// Neither mpirun nor a rank looks for X displays. If the user has set HWLOC_COMPONENTS, that value stays.
TEST(LaunchCommandTest, WhatHwlocLooksForIsTheUsersWhereTheySaid) {
  for (MpiFlavour flavour : {MpiFlavour::kOpenMpi, MpiFlavour::kMpich}) {
    LaunchOptions options = Options(flavour);
    EXPECT_THAT(MakeLaunchCommand(options).environment, Contains("HWLOC_COMPONENTS=-gl,-opencl"));
    options.environment.push_back("HWLOC_COMPONENTS=linux,stop");
    const std::vector<std::string> environment = MakeLaunchCommand(options).environment;
    EXPECT_THAT(environment, Contains("HWLOC_COMPONENTS=linux,stop"));
    EXPECT_THAT(environment, Not(Contains("HWLOC_COMPONENTS=-gl,-opencl")));
  }
}

}  // namespace
}  // namespace hooke
