package wire

import (
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// TargetToProto returns t as transactions carry it.
func TargetToProto(t job.Target) (m workv1.Target) {
	switch i := uint32(t.Index()); t.Kind() {
	case job.AboutUnit:
		m.Subject = &workv1.Target_Unit{Unit: i}
	case job.AboutMerge:
		m.Subject = &workv1.Target_Merge{Merge: i}
	case job.AboutVerdict:
		m.Subject = &workv1.Target_Verdict{Verdict: &workv1.VerdictTarget{Unit: i, Auditor: t.Account()}}
	case job.AboutTruth:
		m.Subject = &workv1.Target_Truth{Truth: &workv1.TruthTarget{Unit: i, Segment: uint32(t.Segment())}}
	case job.AboutResult:
		m.Subject = &workv1.Target_Result{Result: &workv1.ResultTarget{Unit: i, Replica: t.Account(), Segment: uint32(t.Segment())}}
	}
	return m
}

// TargetFromProto is the inverse of TargetToProto. It refuses what names nothing in
// any order.
func TargetFromProto(m workv1.Target) (t job.Target, err error) {
	switch s := m.Subject.(type) {
	case *workv1.Target_Unit:
		t = job.UnitTarget(int(s.Unit))
	case *workv1.Target_Merge:
		t = job.MergeTarget(int(s.Merge))
	case *workv1.Target_Verdict:
		if s.Verdict != nil {
			t = job.VerdictTarget(int(s.Verdict.Unit), s.Verdict.Auditor)
		}
	case *workv1.Target_Truth:
		if s.Truth != nil {
			t = job.TruthTarget(int(s.Truth.Unit), int(s.Truth.Segment))
		}
	case *workv1.Target_Result:
		if s.Result != nil {
			t = job.ResultTarget(int(s.Result.Unit), s.Result.Replica, int(s.Result.Segment))
		}
	}
	return t, t.Check()
}
