# cells: pg15 pg17 pg18
# A standby is promoted: an outgoing pipeline goes on there with its copy of the slot, nothing lost and nothing twice; without one, or where the
# sink has more than the standby, it has lost its slot and says so.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use CdcBridge::Standby;
use Test::More;

my $primary = CdcBridge::Postgres->new;
my $plain = CdcBridge::Export->new(postgres => $primary, name => 'plain')->setup;
$primary->psql('create schema shop; create table shop.t (id int primary key, v text)');
$plain->start->wait_for_state('streaming');
my $export = CdcBridge::Export->new(postgres => $primary, name => 'moves', options => '{"failover": true, "messages": true}', dir => $plain->{dir});
my $has_copies = $primary->major >= 17;

if (!$has_copies)
{
	like($primary->psql_error(qq(select cdc_create_pipeline('moves', sink => 'files', tables => '{shop.*}', options => '{"failover": true}'))),
		qr/ERROR:  0A000: option "failover" of pipeline "moves" needs PostgreSQL 17 or later.*HINT:  Leave it out/s, 'P10: the option is refused where there are no copies of slots');
	like($primary->psql_error(qq(select cdc_alter_pipeline('plain', options => '{"failover": true}'))), qr/needs PostgreSQL 17/, 'P10: also in an ALTER');
}
$export->start->wait_for_state('streaming') if $has_copies;
my $slot = $has_copies ? $export->status('slot_name') : '';
my $standby = CdcBridge::Standby->new(primary => $primary, slot => 'sb1');

# The same pipeline, looked at on another server.
sub on { my ($server, $of) = @_; return bless { %$of, postgres => $server }, ref $of; }

SKIP:
{
	skip('no copies of slots before PostgreSQL 17', 1) unless $has_copies;
	is($primary->psql("select failover from pg_replication_slots where slot_name = '$slot'"), 't', 'P10: the slot has failover');
	is($primary->psql("select failover from pg_replication_slots where slot_name = '" . $plain->status('slot_name') . "'"), 'f', 'P10: and no other has');
	my $check = sub { return $_[0]->psql("select coalesce(string_agg(\"check\" || ': ' || status, ', ' order by \"check\"), '') from cdc_check() where \"check\" in ('failover slots', 'synchronized_standby_slots', 'sync_replication_slots', 'hot_standby_feedback', 'primary_slot_name')"); };
	is($check->($primary), 'synchronized_standby_slots: warning', 'P10: cdc_check tells that nobody waits for standbys');
	is($check->($standby), '', 'P10: and nothing of a standby that is set up');
	$standby->wait_for_slot($slot);
	$primary->psql(q{alter system set synchronized_standby_slots = 'sb1'});
	$primary->psql('select pg_reload_conf()');
	$primary->poll('show synchronized_standby_slots', 'sb1');

	# the option is changed while the pipeline is there
	$primary->psql(q{select cdc_alter_pipeline('moves', options => '{"failover": false}')});
	ok($primary->poll("select failover from pg_replication_slots where slot_name = '$slot'", 'f'), 'P10: the option can be taken back');
	$primary->psql(q{select cdc_alter_pipeline('moves', options => '{"failover": true}')});
	ok($primary->poll("select failover from pg_replication_slots where slot_name = '$slot'", 't'), 'P10: and given later');
	$export->wait_for_state('streaming');
	$standby->wait_for_slot($slot);

	# ---- nothing is shipped that the standby does not have
	$primary->psql("insert into shop.t select i, 'before' from generate_series(1, 100) i");
	$export->wait_for_all;
	$standby->stop;
	$primary->psql("insert into shop.t values (101, 'alone')");
	$plain->wait_for_all;
	ok(poll_until(sub { return $export->status('waits_for') =~ /the standby of slot "sb1" is not connected/; }), 'P10: the view says that it waits for a standby, and for which') or diag($export->describe);
	is($export->status('state'), 'streaming', 'P10: it runs');
	my ($status, $detail, $hint) = split(/\|/, $primary->psql("select status, detail, hint from cdc_check_pipeline('moves') where \"check\" = 'standbys'"));
	is("$status: $detail", 'warning: Nothing is shipped for now: the standby of slot "sb1" is not connected.', 'P10: so does cdc_check_pipeline');
	like($hint, qr/Start that standby, or take "sb1" out of "synchronized_standby_slots"/, 'P10: and what to do');
	is($check->($primary), 'failover slots: warning', 'P10: and cdc_check');
	is(scalar(grep { $_->{after} && $_->{after}{id} == 101 } $export->records), 0, 'P10: the sink has not got it');
	is(scalar(grep { $_->{after} && $_->{after}{id} == 101 } $plain->records), 1, 'P10: while a pipeline without failover does not wait');
	$standby->start;
	$export->wait_for_all;
	is(scalar(grep { $_->{after} && $_->{after}{id} == 101 } $export->records), 1, 'P10: it comes when the standby is back');
	is($export->status('waits_for'), '', 'P10: and nothing is waited for');
	$standby->wait_for_slot($slot)->wait_for_copy($slot);
}

# ---- the primary is gone
$primary->psql("insert into shop.t values (200, 'last'), (201, 'words')");
$plain->wait_for_all;
$export->wait_for_all if $has_copies;
my $end = $primary->psql('select pg_current_wal_lsn()');
$standby->poll("select pg_last_wal_replay_lsn() >= '$end'") or die "the standby stays behind\n";
$primary->kill9;
$standby->promote;
my $lost = on($standby, $plain);
$lost->wait_for_state('failed');
is($lost->status('last_error_sqlstate'), 'YC001', 'P10: a pipeline that had no copy of its slot has lost it');
like($lost->status('last_error_detail'), $has_copies ? qr/This server was promoted, and had no copy of it: option "failover"/ : qr/This server was promoted; standbys have copies of slots from PostgreSQL 17 on/, 'P10: and says why');

SKIP:
{
	skip('no copies of slots before PostgreSQL 17', 1) unless $has_copies;
	my $moved = on($standby, $export);
	$moved->wait_for_state('streaming');
	$standby->psql("update shop.t set v = 'after' where id in (1, 200); insert into shop.t values (300, 'new'); delete from shop.t where id = 2");
	$moved->wait_for_all;
	$moved->is_replayed('shop', 't', 'id', 'P10: on the promoted standby it goes on, nothing lost and nothing twice');
	like($standby->log_text, qr/pipeline "moves" goes on under another server than before/, 'P10: and logs that it moved');
	is($standby->psql('select timeline from cdc_bridge.export_state where pipeline_id = ' . $moved->status('pipeline_id')), '2', 'P10: the timeline is noted');

	# ---- the former primary becomes a standby, with the slot of its own
	$primary->append_conf("primary_conninfo = 'host=/nowhere'\nhot_standby_feedback = off");
	$primary->become_standby->start;
	my @lines = split(/\n/, $primary->psql("select status, \"check\", hint from cdc_check() where \"check\" in ('failover slots', 'sync_replication_slots', 'hot_standby_feedback', 'primary_slot_name') order by 2"));
	is(join("\n", map { s/;.*//r } @lines), "error|failover slots|SELECT pg_drop_replication_slot('$slot')\nwarning|hot_standby_feedback|ALTER SYSTEM SET hot_standby_feedback = on\n"
		. "warning|primary_slot_name|Make a physical slot on the primary, name it with ALTER SYSTEM SET primary_slot_name, and reload the configuration\nwarning|sync_replication_slots|ALTER SYSTEM SET sync_replication_slots = on",
		'P10: a slot of its own that stops the copying of all slots, and what is not set');
	$primary->stop;

	# ---- a sink that has more than the standby that is promoted
	$standby->psql("select cdc_drop_pipeline('plain')");
	my $second = CdcBridge::Standby->new(primary => $standby, slot => 'sb2');
	$second->wait_for_slot($slot)->wait_for_copy($slot);
	$second->stop;
	$standby->psql("insert into shop.t values (400, 'only here')");
	$moved->wait_for_all;
	$standby->kill9;
	$second->start->promote;
	$second->psql("insert into shop.t select i, 'other history' from generate_series(500, 600) i");
	my $ahead = on($second, $export);
	$ahead->wait_for_state('failed');
	is($ahead->status('last_error_sqlstate'), 'YC001', 'P10: where the sink has more than the promoted standby the pipeline stops');
	like($ahead->status('last_error_detail'), qr/This server was promoted at \S+, and the sink has everything up to \S+ of the former primary/, 'P10: and nothing is guessed');
}

done_testing();
