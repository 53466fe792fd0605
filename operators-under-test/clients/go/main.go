// The Sample operator on controller-runtime: reads come from the caches, as is usual there.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A child is known by its name, so that no damage to its labels or owners hides it.
var childName = regexp.MustCompile(`^(.+)-([0-9]+)$`)

type reconciler struct {
	client client.Client
	scheme *runtime.Scheme
}

func main() {
	namespace := flag.String("namespace", "", "the namespace that is served")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*namespace); err != nil {
		ctrl.Log.Error(err, "ended")
		os.Exit(1)
	}
}

func run(namespace string) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := addToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	toSample := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, child client.Object) []reconcile.Request {
		parts := childName.FindStringSubmatch(child.GetName())
		if parts == nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: child.GetNamespace(), Name: parts[1]}}}
	})
	err = ctrl.NewControllerManagedBy(manager).
		For(&Sample{}).
		Watches(&corev1.ConfigMap{}, toSample).
		Complete(&reconciler{client: manager.GetClient(), scheme: scheme})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// Reconcile brings the world to what a Sample asks for.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var sample Sample
	if err := r.client.Get(ctx, request.NamespacedName, &sample); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// Children go with their owner, by garbage collection.
	if sample.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	var list corev1.ConfigMapList
	if err := r.client.List(ctx, &list, client.InNamespace(sample.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	found := map[int]*corev1.ConfigMap{}
	for i := range list.Items {
		parts := childName.FindStringSubmatch(list.Items[i].Name)
		if parts == nil || parts[1] != sample.Name {
			continue
		}
		if number, err := strconv.Atoi(parts[2]); err == nil {
			found[number] = &list.Items[i]
		}
	}
	for number := range sample.Spec.Count {
		if err := r.keep(ctx, &sample, number, found[number]); err != nil {
			return reconcile.Result{}, err
		}
	}
	for number, child := range found {
		if number >= sample.Spec.Count && metav1.IsControlledBy(child, &sample) {
			if err := r.deleteSurplus(ctx, child); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	return reconcile.Result{}, r.report(ctx, &sample)
}

func (r *reconciler) keep(ctx context.Context, sample *Sample, number int, child *corev1.ConfigMap) error {
	if child == nil {
		child = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: sample.Namespace,
			Name:      fmt.Sprintf("%s-%d", sample.Name, number),
		}}
		child.Data = map[string]string{"text": sample.Spec.Text}
		if err := ctrl.SetControllerReference(sample, child, r.scheme); err != nil {
			return err
		}
		return r.client.Create(ctx, child)
	}
	wanted := map[string]string{"text": sample.Spec.Text}
	if maps.Equal(child.Data, wanted) && metav1.IsControlledBy(child, sample) {
		return nil
	}
	child = child.DeepCopy()
	child.Data = wanted
	// Fails where somebody else controls it.
	if err := ctrl.SetControllerReference(sample, child, r.scheme); err != nil {
		return err
	}
	return r.client.Update(ctx, child)
}

// Only the very version that was seen goes: one made anew under its name is somebody else's business.
func (r *reconciler) deleteSurplus(ctx context.Context, child *corev1.ConfigMap) error {
	seen := client.Preconditions{UID: &child.UID, ResourceVersion: &child.ResourceVersion}
	if err := r.client.Delete(ctx, child, seen); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

func (r *reconciler) report(ctx context.Context, sample *Sample) error {
	next := sample.DeepCopy()
	next.Status.ObservedGeneration = sample.Generation
	next.Status.Ready = sample.Spec.Count
	changed := meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "Complete",
		Message:            "all children are there",
		ObservedGeneration: sample.Generation,
	})
	if !changed && next.Status.ObservedGeneration == sample.Status.ObservedGeneration && next.Status.Ready == sample.Status.Ready {
		return nil
	}
	return r.client.Status().Update(ctx, next)
}
