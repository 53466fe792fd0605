package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "clients.example.com", Version: "v1"}

// Sample asks for ConfigMaps NAME-0 to NAME-(count - 1) with one text.
type Sample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SampleSpec   `json:"spec"`
	Status SampleStatus `json:"status,omitempty"`
}

// SampleSpec is what a Sample asks for.
type SampleSpec struct {
	Text  string `json:"text,omitempty"`
	Count int    `json:"count"`
}

// SampleStatus is what the operator says about it.
type SampleStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Ready              int                `json:"ready"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// SampleList is a list of Samples.
type SampleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Sample `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (s *Sample) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopy makes an independent copy.
func (s *Sample) DeepCopy() *Sample {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), s.Status.Conditions...)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *SampleList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Sample, 0, len(l.Items))
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return &out
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &Sample{}, &SampleList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}
