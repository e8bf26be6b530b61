/** `singlet/testkit`: probes, a manual clock, a simulated network, and the simulator with its invariants. */
export { ManualEnvironment } from './manual_environment.ts';
export { TestKit } from './test_kit.ts';
export { ProbeError, TestProbe } from './test_probe.ts';
export { sameValue, showValue } from './values.ts';

export { Prng } from './prng.ts';
export { SimulationError, World } from './sim_world.ts';
export type { CrashOptions, PartitionOptions, PauseOptions, ResumeOrder, WorldOptions } from './world_options.ts';
export type { Boot, SimHost } from './sim_host.ts';
export type { ExitKind, SimProcess } from './sim_process.ts';
export { simulatedNode } from './simulated_node.ts';
export { SimTransport, type SimTransportOptions } from './sim_transport.ts';
export type { HealMode, NetworkOptions } from './sim_network.ts';
export { type DelayProfile, delayProfiles } from './sim_path.ts';
export { formatEntry, Trace, type TraceEntry } from './trace.ts';

export { describeFault, type Fault } from './fault.ts';
export { type PlanContext, type Profile, profileNamed, profileNames, registerProfile } from './profiles.ts';
export { clusterProgram, type ClusterScene } from './cluster_program.ts';
export type { Program, ProgramRun, RunContext } from './program.ts';
export {
  drawPlan,
  type Plan,
  runPlan,
  simulate,
  type SimulateOptions,
  type SimulationFailure,
  type SimulationResult,
} from './simulate.ts';
export { shrink, type ShrinkResult } from './shrink.ts';
export { formatReport } from './report.ts';
export { programNamed, programNames } from './programs.ts';

export { type Instance, InstanceRegistry } from './instance_registry.ts';
export { Ledger, type LedgerMessage, type LedgerPolicy, type LedgerStream } from './ledger.ts';
export { EventBook } from './event_book.ts';
export { type DiskFaultKind, SimDisk } from './sim_disk.ts';
export { disagreement, MembershipRules, type NodeView } from './membership_rules.ts';
