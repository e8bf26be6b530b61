/** `singlet/http`: the Hono app of a node, and what it asks of the node. */
export { createApp } from './app.ts';
export type {
  ClusterInspection,
  HandOverReport,
  InspectionEvent,
  InspectionEventKind,
  MemberReport,
  MembersReport,
  MetricSample,
  MoveOutcome,
  Readiness,
  RebalanceOutcome,
  ShutdownOutcome,
  SingletonDetail,
  SingletonReport,
} from './inspection.ts';
