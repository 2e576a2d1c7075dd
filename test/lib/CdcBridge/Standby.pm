package CdcBridge::Standby;

# A streaming standby of a CdcBridge::Postgres, which is one itself: a base backup, a physical slot on the primary, and from
# PostgreSQL 17 on copies of failover slots.
#
#   my $standby = CdcBridge::Standby->new(primary => $postgres, slot => 'sb1');
#   $standby->wait_for_slot('cdc_5_1');             # it has a copy of that slot, good for a promotion
#   $primary->kill9;
#   $standby->promote;

use strict;
use warnings;

use parent -norequire, 'CdcBridge::Postgres';

use CdcBridge::Env qw(poll_until run_program);
use CdcBridge::Postgres;

sub new
{
	my ($class, %option) = @_;
	my $primary = $option{primary};
	my $self = CdcBridge::Postgres->new->stop;
	$primary->psql("select pg_create_physical_replication_slot('$option{slot}', true)");
	system('rm', '-rf', "$self->{dir}/data") == 0 or die "$self->{dir}/data cannot be removed\n";
	run_program("$self->{dir}/backup.log", "$self->{bindir}/pg_basebackup", '-h', $primary->host, '-p', $primary->port, '-U', 'postgres',
		'-D', "$self->{dir}/data", '-X', 'stream', '-S', $option{slot}, '-c', 'fast', '--no-sync');
	$self->append_conf("port = $self->{port}\nunix_socket_directories = '$self->{dir}'\nhot_standby_feedback = on\nprimary_slot_name = '$option{slot}'\n"
		. "primary_conninfo = 'host=$primary->{dir} port=$primary->{port} user=postgres dbname=postgres'\nwal_retrieve_retry_interval = 200ms\n"
		. ($self->major >= 17 ? "sync_replication_slots = on\n" : ''));
	$self->become_standby->start;
	$self->{primary} = $primary;
	return bless $self, $class;
}

# Poll until there is a copy of a slot that stays when the server is promoted. The copy can be made only when the primary's slot has moved
# on to what the standby still has, which takes a look at the running transactions there.
sub wait_for_slot
{
	my ($self, $slot) = @_;
	poll_until(sub {
		$self->{primary}->psql("select pg_log_standby_snapshot(); select pg_logical_emit_message(true, 'standby', 'goes on')");
		return $self->psql("select synced and not temporary from pg_replication_slots where slot_name = '$slot'") eq 't';
	}, 60) or die "the standby has no copy of slot $slot\n" . $self->log_tail;
	return $self;
}

# The copy is as far as the primary's slot.
sub wait_for_copy
{
	my ($self, $slot) = @_;
	my $lsn = $self->{primary}->psql("select confirmed_flush_lsn from pg_replication_slots where slot_name = '$slot'");
	$self->poll("select confirmed_flush_lsn >= '$lsn' from pg_replication_slots where slot_name = '$slot'", 't', 60) or die "the copy of slot $slot stays behind\n" . $self->log_tail;
	return $self;
}

sub promote
{
	my ($self) = @_;
	$self->psql('select pg_promote()');
	return $self;
}

1;
